"""Recorded nodes as evidence: a healthy one from its folder, and the same with something changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from health.catalogue import plan
from health.check import Collect, Level
from health.evidence import SCHEMA, Evidence, parse, seal
from health.verdict import Verdict, verdict
from inventory.model import Profile

FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "health" / "nodes"
NONCE = "5e0c2f9a1b7d44e88a31c6f0d2b97e10"
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """One node as it was when it was well. Documents are made anew each time: they may be changed."""

    profile: Profile
    meta: Mapping[str, Any]
    texts: Mapping[str, str]

    @property
    def collected_at(self) -> float:
        """The controller's clock when the evidence began."""
        return float(self.meta["wall_clock"])

    def document(self) -> Document:
        """Return the collector's document, not yet sealed."""
        clock = {name: self.meta[name] for name in ("boot_id", "uptime_s", "boot_time", "wall_clock")}
        later = {**clock, "uptime_s": clock["uptime_s"] + 9.5, "wall_clock": clock["wall_clock"] + 9.5}
        overrides = self.meta.get("items", {})
        return {
            "schema": SCHEMA,
            "nonce": NONCE,
            "plan": "recorded",
            "user": 0,
            "python": "3.10.12",
            "began": clock,
            "items": [
                item_document(collect, self.texts[collect.id], **overrides.get(collect.id, {}))
                for collect in plan(self.profile, Level.BURNIN).items
                if collect.id in self.texts
            ],
            "ended": later,
        }

    def raw(self, change: Callable[[Document], None] | None = None) -> bytes:
        """Return sealed evidence, changed before the seal: what a node in that state would have sent."""
        document = self.document()
        if change:
            change(document)
        return sealed(document)

    def evidence(self, change: Callable[[Document], None] | None = None) -> Evidence:
        """Return the evidence, parsed."""
        return parse(self.raw(change), nonce=NONCE)

    def verdict(
        self, change: Callable[[Document], None] | None = None, level: Level = Level.QUICK
    ) -> Verdict:
        """Judge the node."""
        return verdict(self.evidence(change), self.profile, level, collected_at=self.collected_at)


def item_document(collect: Collect, text: str, **changes: Any) -> Document:
    """Return one item as the collector describes it."""
    document: Document = {
        "id": collect.id,
        "rc": 0,
        "at_s": collect.after_s,
        "seconds": 0.04,
        "timed_out": False,
        "denied": False,
        "missing": False,
        "stdout": stream(text),
        "stderr": stream(changes.pop("errors", "")),
    }
    document["argv" if collect.argv else "file"] = list(collect.argv) or collect.file
    if collect.each:
        document["each"] = collect.each
    return {**document, **changes}


def stream(text: str) -> Document:
    """Return a stream as the collector describes it."""
    data = text.encode("utf-8", "surrogatepass")
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "text": text}


def sealed(document: Document) -> bytes:
    """Return a document with its seal, as bytes."""
    return json.dumps({**document, "seal": seal(document)}, ensure_ascii=True).encode() + b"\n"


def item(document: Document, id: str) -> Document:
    """Return one item of a document, to be changed."""
    return next(entry for entry in document["items"] if entry["id"] == id)


def load(name: str) -> RecordedNode:
    """Read the recorded node `name`."""
    folder = FOLDER / name
    meta = json.loads((folder / "node.json").read_text(encoding="utf-8"))
    texts = {path.name: path.read_bytes().decode("utf-8") for path in sorted((folder / "items").iterdir())}
    profile = Profile(name=meta["profile"], limits=meta["limits"], checks=tuple(meta.get("checks", ())))
    return RecordedNode(profile, meta, texts)


def names() -> tuple[str, ...]:
    """Return the names of all recorded nodes."""
    return tuple(sorted(path.name for path in FOLDER.iterdir()))
