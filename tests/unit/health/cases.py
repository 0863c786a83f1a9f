"""Reads the cases under tests/fixtures/health: a recorded node, what is changed in it, what is expected."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.recorded_nodes import Document, RecordedNode, item, load, stream
from health.bootlog.anomalies import find_anomalies
from health.bootlog.boot import cohort_of
from health.bootlog.learn import learn
from health.bootlog.model import BootModel
from health.bootlog.triage import Decision, Decisions
from health.checks.kernel_boot_log import seen_boot
from health.evidence import Context, Evidence
from inventory.model import Profile

FOLDER = Path(__file__).parents[2] / "fixtures" / "health"
_NOT_CHECKS = ("nodes", "samples")


@dataclass(frozen=True, slots=True)
class Case:
    """One case of one check."""

    check: str
    name: str
    given: Mapping[str, Any]
    expected: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.check}/{self.name}"

    def node(self) -> RecordedNode:
        """Return the node with the case's limits; a limit of null is not stated."""
        node = load(self.given["node"])
        limits = {**node.profile.limits, **self.given.get("limits", {})}
        stated = {name: value for name, value in limits.items() if value is not None}
        return replace(node, profile=replace(node.profile, limits=stated))

    def context(self, evidence: Evidence) -> Context:
        """Return what the controller knows: the time, and boots like the node's own if the case says so."""
        node = self.node()
        boots = alike(self.given["node"]) if self.given.get("boots") == "alike" else None
        context = replace(evidence.context, collected_at=node.collected_at, boots=boots)
        if boots is None or "decided" not in self.given:
            return context
        odd = find_anomalies(boots, seen_boot(replace(evidence, context=context), "node")[0])
        by_card = {one.id: Decision(self.given["decided"]) for one in odd}
        return replace(
            context, triage=Decisions(by_card, dict.fromkeys(by_card, self.given.get("until", 0.0)))
        )

    def change(self, document: Document) -> None:
        """Apply the case's edits; one that changes nothing is a mistake in the case."""
        for edit in self.given.get("edits", ()):
            _edit(document, edit)
        ahead = self.given.get("clock_ahead_s", 0.0)
        for moment in ("began", "ended"):
            clock = document[moment]
            document[moment] = {**clock, "wall_clock": clock["wall_clock"] + ahead}


def _edit(document: Document, edit: Mapping[str, Any]) -> None:
    entry = item(document, edit["item"])
    if edit.get("drop"):
        document["items"].remove(entry)
        return
    if "set" in edit:
        changes = dict(edit["set"])
        if "errors" in changes:
            changes["stderr"] = stream(changes.pop("errors"))
        entry.update(changes)
        return
    before = entry["stdout"]["text"]
    after = edit["text"] if "text" in edit else _changed(before, edit)
    assert after != before or before == "", f"edit of {edit['item']} changes nothing: {edit}"
    entry["stdout"] = stream(after)


def _changed(text: str, edit: Mapping[str, Any]) -> str:
    if "replace" in edit:
        old, new, count = edit["replace"]
        return text.replace(old, new, count)
    if "append" in edit:
        end = edit.get("before", "")
        assert text.endswith(end)
        return text.removesuffix(end) + edit["append"] + end
    if "cut_from" in edit:
        return text[: text.index(edit["cut_from"])]
    if "cut_to" in edit:
        return text[text.index(edit["cut_to"]) :]
    kept = [
        part
        for part in re.split(r"(?=^==> )", text, flags=re.MULTILINE)
        if part and edit["drop_files"] not in part.split("\n", 1)[0]
    ]
    kept[-1] = f"==> {len(kept) - 1} in all <==\n"
    return "".join(kept)


def all_cases() -> list[Case]:
    """Return every case, by check and name."""
    return [
        Case(
            check=folder.parent.name,
            name=folder.name,
            given=json.loads((folder / "evidence.json").read_text(encoding="utf-8")),
            expected=json.loads((folder / "expect.json").read_text(encoding="utf-8")),
        )
        for folder in sorted(path.parent for path in FOLDER.glob("*/*/expect.json"))
        if folder.parent.name not in _NOT_CHECKS
    ]


@cache
def alike(name: str) -> BootModel | None:
    """Return what is learned of ten nodes that boot just as the recorded one; None where it has no log."""
    node = load(name)
    if "kernel.kmsg" not in node.texts:
        return None
    boot = seen_boot(node.evidence(), "n")[0]
    boots = [replace(boot, node=f"n{number % 10}") for number in range(30)]
    return learn(cohort_of(node.profile.name, boot), boots, reliable=frozenset(one.node for one in boots))


def profile(**limits: object) -> Profile:
    """Return a profile with the limits given; dots in names are written as two underscores."""
    return Profile(name="test", limits={name.replace("__", "."): value for name, value in limits.items()})
