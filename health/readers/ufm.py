"""Reads UFM: its event log, REST events in both schemas, telemetry."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable
from health.readers.fabric import PortCounters
from health.readers.json_text import part, read_json

_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[(?P<id>\d+)\] \[(?P<code>\d+)\] (?P<level>\w+) "
    r"\[(?P<topic>[^\]]*)\] (?P<kind>\w+) \[(?P<where>[^\]]*)\](?: \[dev_id: [^\]]*\])?: (?P<text>.*)$"
)
_COUNTERS = re.compile(r"^Infiniband_(?P<name>\w+?)_u_(?:Errors|Drops)$")
_NAMES = {
    "LinkIntegrityErrors": "LocalLinkIntegrityErrors",
    "VL15Dropped": "VL15Dropped",
    "XmtConstraintErrors": "PortXmitConstraintErrors",
    "RcvConstraintErrors": "PortRcvConstraintErrors",
}


@dataclass(frozen=True, slots=True)
class UfmEvent:
    """One event. `code` is UFM's number, whatever field it came in."""

    code: int
    level: str
    where: str
    text: str


def read_events(text: str) -> tuple[UfmEvent, ...]:
    """Read the event log's lines, or the REST list. Raises Unreadable."""
    if text.lstrip().startswith("["):
        rows = read_json("UFM events", text)
        return tuple(_rest(row) for row in rows)
    found = [_LINE.search(line) for line in text.splitlines() if line.strip()]
    events = tuple(
        UfmEvent(int(hit["code"]), hit["level"].lower(), hit["where"], hit["text"]) for hit in found if hit
    )
    if not events or len(events) < len(found) / 2:
        raise Unreadable("UFM event log", f"it begins {text.strip()[:60]!r}")
    return events


@dataclass(frozen=True, slots=True)
class UfmObject:
    """A port, link or system as a REST list shows it."""

    name: str
    severity: str
    state: str


def read_objects(text: str) -> tuple[UfmObject, ...]:
    """Read a REST list of ports, links or systems; empty where it is a list of something else."""
    if not text.lstrip().startswith("["):
        return ()
    found = [_state(row) for row in read_json("UFM list", text)]
    return tuple(one for one in found if one is not None) if all(found) else ()


def _state(row: object) -> UfmObject | None:
    """Return what a row says of a thing, or None where it is no thing: an event has a code."""
    if part(row, "description") is not None or part(row, "event_type") is not None:
        return None
    words = [part(row, key) for key in ("logical_state", "physical_state", "state", "condition")]
    name = part(row, "name") or part(row, "system_name")
    if name is None or (part(row, "severity") is None and not any(words)):
        return None
    return UfmObject(
        str(name), str(part(row, "severity") or ""), " ".join(str(word) for word in words if word)
    )


def _rest(row: object) -> UfmEvent:
    # Older answers keep the code in `type`, newer ones in `event_type` beside the type of the object.
    code = part(row, "event_type") or part(row, "type")
    if code is None or not str(code).isdecimal():
        raise Unreadable("UFM events", "an event has no code")
    return UfmEvent(
        int(str(code)),
        str(part(row, "severity") or "").lower(),
        str(part(row, "object_path") or part(row, "object_name") or ""),
        str(part(row, "description") or part(row, "name") or ""),
    )


def read_telemetry(text: str) -> tuple[PortCounters, ...]:
    """Read a telemetry snapshot. Raises Unreadable."""
    rows = part(read_json("UFM telemetry", text), "values")
    if not isinstance(rows, list) or not rows:
        raise Unreadable("UFM telemetry", "it has no values")
    return tuple(_telemetry(row) for row in rows)


def _telemetry(row: object) -> PortCounters:
    counters = {}
    for key, value in row.items() if isinstance(row, dict) else ():
        if (found := _COUNTERS.match(key)) and isinstance(value, int):
            counters[_NAMES.get(found["name"], found["name"])] = value
    return PortCounters(f"{part(row, 'port_guid')} port {part(row, 'port_num')}", counters)
