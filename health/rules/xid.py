"""What Xid and SXid lines say: one finding an incident, with the root named and its echoes left out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from health.facts import Code, Gate, codes
from health.outcome import Action, Finding, Status
from health.readers.kernel import KernelLine

# "PCI:0000:0f:00", with a MIG instance behind it, or a function; "NVRM" keeps r8169's "XID" out.
_XID = re.compile(
    r"NVRM: (?:GPU at \S+ )?Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?"
    r"(?: (?P<mig>[A-Z]+-I:\S+))?\): (?P<code>\d+)(?:, (?P<body>.*))?"
)
_XID_ANY = re.compile(r"NVRM: .*\bXid\b.*?: (?P<code>\d+)\b(?:, (?P<body>.*))?")
_SXID = re.compile(
    r"nvidia-nvswitch(?P<n>\d+): SXid \(PCI:(?P<pci>[0-9a-fA-F:.]+)\): (?P<code>\d+), (?P<body>.*)"
)
_CAUSE = re.compile(r"caused by previous Xid (\d+)")
_PLACE = re.compile(r"\(GPC (\d+), TPC (\d+)")
_STATED = re.compile(r"to 0x[0-9a-f]+ \((?P<action>[^)]*)\)")
_LINK = re.compile(r"\bLink (-?\d+)")
_CONTINUES = re.compile(r"^(?:Data \{|Severity \d)")
# Events of one code on one part within this time are one incident: a dying program prints many.
_INCIDENT_S = 10.0
_UNNAMED = "a GPU that the line does not name"

_STATED_ACTIONS = {
    "none": Action.NONE,
    "gpu reset required": Action.GPU_RESET,
    "drain and reset": Action.GPU_RESET,
    "node reboot required": Action.REBOOT,
    "drain p2p": Action.GPU_RESET,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One Xid or SXid, its continuation lines folded in."""

    kind: str
    code: int
    part: str  # PCI address, for an NVSwitch with its number
    body: str
    line: KernelLine


def events(lines: Iterable[KernelLine]) -> Iterator[Event]:
    """Give the Xid and SXid events of a log."""
    for line in lines:
        if "Xid" not in line.text:
            continue
        if found := _XID.search(line.text):
            yield Event("xid", int(found["code"]), _gpu(found), found["body"] or "", line)
        elif found := _SXID.search(line.text):
            if not _CONTINUES.match(found["body"]):
                part = f"nvswitch{found['n']} at {found['pci'].lower()}"
                yield Event("sxid", int(found["code"]), part, found["body"], line)
        elif found := _XID_ANY.search(line.text):
            yield Event("xid", int(found["code"]), _UNNAMED, found["body"] or "", line)


def _gpu(found: re.Match[str]) -> str:
    domain, _, rest = found["pci"].lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}.0"


@dataclass(frozen=True, slots=True)
class Memory:
    """What nvidia-smi says of each GPU's remapped rows, by PCI address: True while one waits."""

    pending: dict[str, bool]

    def settled(self, part: str) -> bool:
        """Say whether this GPU is known to have no remapping waiting."""
        return self.pending.get(part) is False


def judge_events(
    found: Iterable[Event], *, memory: Memory | None = None, count_max: int = 5
) -> list[Finding]:
    """Return the findings; a code that only counts fails past `count_max` incidents on one part."""
    all_events = list(found)
    incidents = _incidents(all_events)
    blocked = {event.part for event in incidents if _is_block(event)}
    tally: dict[tuple[str, int, str], list[Event]] = defaultdict(list)
    for event in incidents:
        place = _PLACE.search(event.body)
        tally[event.part, event.code, f"{event.kind} {place[0] if place else ''}"].append(event)
    context = _Context(
        codes_by_part={part: {e.code for e in all_events if e.part == part} for part, _, _ in tally},
        blocked=frozenset(blocked),
        memory=memory or Memory({}),
        count_max=count_max,
    )
    findings = []
    for group in tally.values():
        finding = _finding(group, context)
        if finding:
            findings.append(finding)
    return findings


@dataclass(frozen=True, slots=True)
class _Context:
    codes_by_part: dict[str, set[int]]
    blocked: frozenset[str]
    memory: Memory
    count_max: int


def _incidents(found: list[Event]) -> list[Event]:
    last: dict[tuple[str, int, str], float] = {}
    kept = []
    for event in found:
        place = _PLACE.search(event.body)
        link = _LINK.search(event.body)
        key = (event.part, event.code, f"{place and place[0]}{link and link[0]}")
        now = event.line.since_boot_s if event.line.since_boot_s is not None else event.line.wall_clock
        before = last.get(key)
        if now is not None:
            last[key] = now
        if before is not None and now is not None and 0 <= now - before < _INCIDENT_S:
            continue
        kept.append(event)
    return kept


def _is_block(event: Event) -> bool:
    row = codes().get((event.kind, event.code))
    return row is not None and row.gate is Gate.BLOCK


def _finding(group: list[Event], context: _Context) -> Finding | None:
    first = group[0]
    row = codes().get((first.kind, first.code))
    if first.kind == "sxid":
        return _sxid(group, row, context)
    if row is None:
        message = f"Xid {first.code}, which the catalogue does not know: {first.body[:80]}"
        return Finding("gpu", first.part, message, Action.INVESTIGATE, Status.UNKNOWN)
    special = _SPECIAL.get(row.rule)
    if special:
        return special(group, row, context)
    return _by_gate(group, row, context)


def _by_gate(group: list[Event], row: Code, context: _Context, part: str | None = None) -> Finding | None:
    first = group[0]
    if row.gate is Gate.NOTE:
        return None
    action = row.action if len(group) == 1 else row.on_repeat
    often = f", {len(group)} times" if len(group) > 1 else ""
    name = "Xid" if row.kind == "xid" else "SXid"
    message = f"{name} {row.code}{often}: {row.meaning}"
    status = Status.FAIL
    if row.gate is Gate.COUNT and len(group) <= context.count_max:
        status = Status.WARN
    component = "gpu" if row.kind == "xid" else "nvswitch"
    return Finding(component, part or first.part, message, action, status)


def _remap(group: list[Event], row: Code, context: _Context) -> Finding | None:
    """63 and 94 keep a node out only while the row waits for its remapping."""
    finding = _by_gate(group, row, context)
    if finding and context.memory.settled(group[0].part) and len(group) <= context.count_max:
        return Finding(finding.component, finding.identity, finding.message, Action.NONE, Status.WARN)
    return finding


def _cause(group: list[Event], row: Code, context: _Context) -> Finding | None:
    """45 is an echo: of the Xid that it names, or of one beside it, or of a job that ended."""
    named = Counter(int(code) for event in group if (code := _first(_CAUSE, event.body)))
    if named:
        root = named.most_common(1)[0][0]
        known = codes().get(("xid", root))
        if root in context.codes_by_part[group[0].part]:
            return None
        if known and known.gate in (Gate.NOTE, Gate.COUNT):
            return Finding("gpu", group[0].part, f"Xid 45 after Xid {root}", Action.INVESTIGATE, Status.WARN)
        why = f"Xid {root}, named by Xid 45: {known.meaning if known else 'not in the catalogue'}"
        return Finding("gpu", group[0].part, why, known.action if known else Action.INVESTIGATE)
    if context.codes_by_part[group[0].part] - {45}:
        return None
    if len(group) > context.count_max:
        return Finding("gpu", group[0].part, f"Xid 45 alone, {len(group)} times: {row.meaning}", row.action)
    return Finding("gpu", group[0].part, f"Xid 45 alone: {row.meaning}", row.action, Status.WARN)


def _peer(group: list[Event], row: Code, context: _Context) -> Finding | None:
    """137 follows a peer that failed first."""
    if context.blocked - {group[0].part}:
        return None
    status = Status.FAIL if len(group) > context.count_max else Status.WARN
    return Finding("gpu", group[0].part, f"Xid 137: {row.meaning}", row.action, status)


def _stated(group: list[Event], _row: Code, _: _Context) -> Finding | None:
    """154 says itself what the driver wants; the last one stands."""
    last = group[-1]
    stated = (_first(_STATED, last.body) or "").strip().lower()
    action = _STATED_ACTIONS.get(stated)
    if action is Action.NONE:
        return None
    message = f"Xid 154: the driver asks for {stated or 'an action that the line does not name'}"
    return Finding("gpu", last.part, message, action or Action.INVESTIGATE)


def _detail48(group: list[Event], row: Code, context: _Context) -> Finding | None:
    """171 and 172 say where the error of a 48 was."""
    if 48 in context.codes_by_part[group[0].part]:
        return None
    return Finding("gpu", group[0].part, f"Xid {row.code}: {row.meaning}", row.action)


def _until162(group: list[Event], row: Code, context: _Context) -> Finding | None:
    if 162 in context.codes_by_part[group[0].part]:
        return None
    return _by_gate(group, row, context)


def _severity(group: list[Event], row: Code, context: _Context) -> Finding | None:
    """NVLink 5 codes say in their text whether they are fatal."""
    fatal = [event for event in group if not re.search(r"\bNon-?fatal\b", event.body, re.IGNORECASE)]
    if not fatal:
        message = f"Xid {row.code}, nonfatal: {row.meaning}"
        status = Status.FAIL if len(group) > context.count_max else Status.WARN
        return Finding("gpu", group[0].part, message, Action.INVESTIGATE, status)
    if row.gate is Gate.COUNT and not re.search(r"\bFatal\b", fatal[0].body):
        return _by_gate(group, row, context)
    link = _first(_LINK, fatal[0].body)
    at = f" on link {link}" if link not in (None, "-1") else ""
    return Finding("gpu", group[0].part, f"Xid {row.code}{at}: {row.meaning}", Action.GPU_RESET)


def _sxid(group: list[Event], row: Code | None, context: _Context) -> Finding | None:
    """The text's own word decides; the number does where the text has none."""
    first = group[0]
    body = first.body
    nonfatal = re.search(r"\bNon-?fatal\b", body, re.IGNORECASE)
    fatal = not nonfatal and re.search(r"\bFatal\b", body)
    meaning = row.meaning if row else body[:80]
    often = f", {len(group)} times" if len(group) > 1 else ""
    message = f"SXid {first.code}{often}: {meaning}"
    if fatal or (row is None and not nonfatal):
        action = row.action if row and row.gate is Gate.BLOCK else Action.REBOOT
        return Finding("nvswitch", first.part, message, action)
    if row is None or (nonfatal and row.rule == "fatal"):
        status = Status.FAIL if len(group) > context.count_max else Status.WARN
        return Finding("nvswitch", first.part, message, Action.INVESTIGATE, status)
    if row.gate is Gate.NOTE:
        return None
    return _by_gate(group, row, context)


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


_SPECIAL = {
    "remap": _remap,
    "place": _by_gate,
    "cause": _cause,
    "peer": _peer,
    "stated": _stated,
    "detail48": _detail48,
    "until162": _until162,
    "severity": _severity,
}
