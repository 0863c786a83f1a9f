"""Evidence as it came from a node: parsed once, proven whole, then read only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from health.bootlog.console import Console
from health.bootlog.model import BootModel
from health.bootlog.triage import Decisions
from health.errors import EvidenceBroken

SCHEMA = 1
# Stands where the collector left out the middle of a long output.
CUT_MARK = "\n[... cut ...]\n"


@dataclass(frozen=True, slots=True)
class Item:
    """What one command or file gave."""

    id: str
    source: str  # the command line or path, for messages
    rc: int | None
    seconds: float
    text: str
    errors: str
    timed_out: bool = False
    denied: bool = False
    missing: bool = False
    truncated: bool = False
    abandoned: str | None = None  # kernel state of a tool that could not be killed
    state: str | None = None  # kernel state of a tool when its time was over
    at_s: float = 0.0  # when it began, from the collection's beginning

    @property
    def ok(self) -> bool:
        """Say whether it ended by itself, with rc 0, and came back whole."""
        return self.rc == 0 and not (self.timed_out or self.denied or self.truncated)

    @property
    def problem(self) -> str | None:
        """Say in one line why this item cannot be trusted, or None where it can."""
        failures = (
            (self.abandoned, f"hung and could not be killed (state {self.abandoned})"),
            (
                self.timed_out,
                f"did not end within {self.seconds:.0f} s (state {self.state or 'not started'})",
            ),
            (self.denied, "permission denied"),
            (self.missing, "not installed"),
            (self.truncated, "output was longer than its limit and was cut"),
        )
        for failed, what in failures:
            if failed:
                return f"{self.source}: {what}"
        if self.rc != 0:
            said = " ".join((self.errors.strip() or self.text.strip()).split())[-160:]
            return f"{self.source} ended with {self.rc}" + (f": {said}" if said else "")
        return None


@dataclass(frozen=True, slots=True)
class Clock:
    """A node's idea of time at one moment. Seconds; `wall_clock` and `boot_time` since 1970."""

    boot_id: str
    uptime_s: float
    boot_time: float
    wall_clock: float


@dataclass(frozen=True, slots=True)
class Context:
    """What the controller knows beside the evidence itself."""

    collected_at: float | None = None  # controller's clock when the evidence began, seconds since 1970
    repaired_at: float | None = None  # last acknowledged repair; older events are forgiven
    baseline: Evidence | None = None  # an earlier reading of this node, for counters
    medians: Mapping[str, float] = field(default_factory=dict)  # metric -> median of the same profile
    boots: BootModel | None = None  # what was learned of the node's cohort
    triage: Decisions = field(default_factory=Decisions)  # what operators decided about odd lines
    console: Console | None = None  # what the node's console showed since its power came on


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that one collection brought back, whole and unchanged."""

    nonce: str
    plan: str  # digest of the plan that was run
    user: int
    began: Clock
    ended: Clock
    items: Mapping[str, Item]
    digest: str
    context: Context = field(default_factory=Context)

    def item(self, id: str) -> Item | None:
        """Return what the item called `id` gave, or None where it was not collected."""
        return self.items.get(id)


def parse(raw: bytes, *, nonce: str) -> Evidence:
    """Read what the collector printed.

    Raises EvidenceBroken for anything but the whole, unchanged answer to the request `nonce`.
    """
    document = _document(raw)
    if document.get("schema") != SCHEMA:
        raise EvidenceBroken(f"schema {document.get('schema')!r}, expected {SCHEMA}")
    if document.get("seal") != seal(document):
        raise EvidenceBroken("its seal does not match: it was cut or changed on the way")
    if document.get("nonce") != nonce:
        raise EvidenceBroken("it answers another request")
    try:
        evidence = _evidence(document)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as exc:
        raise EvidenceBroken(f"its form is not the collector's ({exc!r})") from exc
    began, ended = evidence.began, evidence.ended
    if not began.boot_id or began.boot_id != ended.boot_id:
        raise EvidenceBroken("the node has no single boot id: it rebooted while evidence was gathered")
    return evidence


def nonce_of(raw: bytes) -> str:
    """Return the nonce written in saved evidence, for judging it again offline."""
    return str(_document(raw).get("nonce", ""))


def seal(document: Mapping[str, object]) -> str:
    """Return the digest that proves a document whole; the collector computes the same."""
    body = {key: value for key, value in document.items() if key != "seal"}
    packed = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(packed.encode("ascii")).hexdigest()


def _document(raw: bytes) -> dict[str, object]:
    # A login banner may precede the document; nothing may follow it.
    start = raw.find(b'{"')
    if start < 0:
        raise EvidenceBroken("no document in it" if raw.strip() else "it is empty")
    try:
        document = json.loads(raw[start:])
    except (ValueError, RecursionError) as exc:
        raise EvidenceBroken("it was cut, or something was written into it") from exc
    if not isinstance(document, dict):
        raise EvidenceBroken("it is no JSON object")
    return document


def _evidence(document: dict[str, object]) -> Evidence:
    listed = document["items"]
    if not isinstance(listed, list):
        raise TypeError("items")
    items = {}
    for entry in listed:
        item = _item(entry)
        if item.id in items:
            raise ValueError(f"item {item.id} twice")
        items[item.id] = item
    user = document["user"]
    if not isinstance(user, int):
        raise TypeError("user")
    return Evidence(
        nonce=str(document["nonce"]),
        plan=str(document["plan"]),
        user=user,
        began=_clock(document["began"]),
        ended=_clock(document["ended"]),
        items=items,
        digest=str(document["seal"]),
    )


def _clock(document: object) -> Clock:
    if not isinstance(document, dict):
        raise TypeError("clock")
    return Clock(
        boot_id=str(document["boot_id"]),
        uptime_s=float(document["uptime_s"]),
        boot_time=float(document["boot_time"]),
        wall_clock=float(document["wall_clock"]),
    )


def _item(document: dict[str, object]) -> Item:
    rc = document["rc"]
    if not (rc is None or isinstance(rc, int)):
        raise TypeError("rc")
    argv = document.get("argv")
    source = " ".join(map(str, argv)) if isinstance(argv, list) else str(document["file"])
    text, truncated = _stream(document["stdout"])
    errors, _ = _stream(document["stderr"])
    abandoned = document.get("abandoned")
    return Item(
        id=str(document["id"]),
        source=source,
        rc=rc,
        seconds=float(str(document["seconds"])),
        text=text,
        errors=errors,
        timed_out=bool(document["timed_out"]),
        denied=bool(document["denied"]),
        missing=bool(document["missing"]),
        truncated=truncated,
        abandoned=str(abandoned) if abandoned else None,
        state=str(document["state"]) if document.get("state") else None,
        at_s=float(str(document["at_s"])),
    )


def _stream(document: object) -> tuple[str, bool]:
    if not isinstance(document, dict):
        raise TypeError("stream")
    if "base64" in document:
        data = base64.b64decode(str(document["base64"]), validate=True)
    else:
        data = str(document["text"]).encode("utf-8", "surrogatepass")
    truncated = bool(document.get("truncated"))
    if truncated:
        cut = int(document["cut_after"])
        return data[:cut].decode("utf-8", "replace") + CUT_MARK + data[cut:].decode("utf-8", "replace"), True
    if hashlib.sha256(data).hexdigest() != document["sha256"] or len(data) != document["bytes"]:
        raise ValueError("an item's digest does not match its bytes")
    return data.decode("utf-8", "replace"), False
