"""Reads Redfish answers: states anywhere in a resource, log entries, metrics, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from health.errors import Unreadable
from health.readers.json_text import number, part, read_object

# A part in such a state is not there, or not meant to work: its health is of no meaning.
_NOT_IN_USE = frozenset({"Absent", "Disabled", "StandbySpare", "Deferring", "Quiesced"})


@dataclass(frozen=True, slots=True)
class State:
    """One part's own word on its health."""

    name: str
    state: str
    health: str

    @property
    def in_use(self) -> bool:
        """Say whether the part is there and meant to work."""
        return self.state not in _NOT_IN_USE


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One log entry; `asserted` None where it does not tell, `repaired` by the vendor's own flag."""

    id: str
    created: str
    severity: str
    message: str
    sensor: str
    asserted: bool | None
    repaired: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """A reading that passes a limit stated beside it."""

    name: str
    reading: float
    limit: float


def read_resource(text: str) -> Mapping[str, object]:
    """Return a resource. Raises Unreadable."""
    document = read_object("Redfish answer", text)
    if not document:
        raise Unreadable("Redfish answer", "it is empty")
    return document


def error_of(document: Mapping[str, object]) -> tuple[str, str] | None:
    """Return id and text of an error body, or None for a resource."""
    error = document.get("error")
    if not isinstance(error, dict):
        return None
    first = part(error, "@Message.ExtendedInfo", 0)
    message = part(first, "Message") or error.get("message") or "no message"
    return str(part(first, "MessageId") or error.get("code") or ""), str(message)


def states(document: object, name: str = "") -> Iterator[State]:
    """Give each Status in a resource with the name of what it is about."""
    if isinstance(document, list):
        for entry in document:
            yield from states(entry, name)
        return
    if not isinstance(document, dict):
        return
    own = document.get("Name") or document.get("FanName") or document.get("Id") or document.get("MemberId")
    name = str(own) if own else name
    status = document.get("Status")
    if isinstance(status, dict):
        health = str(status.get("Health") or "")
        rollup = str(status.get("HealthRollup") or "")
        yield State(name, str(status.get("State") or ""), health or rollup)
    for key, entry in document.items():
        if key not in ("Status", "Links", "Actions", "RelatedItem") and isinstance(entry, dict | list):
            yield from states(entry, name if isinstance(entry, list) else key)


def log_entries(document: Mapping[str, object]) -> tuple[LogEntry, ...] | None:
    """Return a log collection's entries, or None for a resource that is no log."""
    members = document.get("Members")
    if not isinstance(members, list):
        return None
    rows = [row for row in members if isinstance(row, dict) and ("Message" in row or "EntryType" in row)]
    if not rows and "LogEntry" not in str(document.get("@odata.type", "")):
        return None
    return tuple(_entry(row) for row in rows)


def _entry(row: Mapping[str, object]) -> LogEntry:
    code = _flat(row.get("EntryCode")).lower()
    oem = part(row, "Oem", "Hpe") or part(row, "Oem", "Hp")
    asserted = None
    if "assert" in code:
        asserted = "deassert" not in code
    return LogEntry(
        id=str(row.get("Id", "")),
        created=str(row.get("Created", "")),
        severity=str(row.get("Severity") or ""),
        message=" ".join(str(row.get("Message") or row.get("MessageId") or "").split()),
        sensor=_flat(row.get("SensorType")),
        asserted=asserted,
        repaired=part(oem, "Repaired") is True or row.get("Resolved") is True,
    )


def _flat(value: object) -> str:
    """Return a word that may be text, null, or a list of objects with a member."""
    if isinstance(value, list):
        return " ".join(str(part(one, "Member") or one) for one in value)
    return str(value or "")


def measures(document: object) -> Iterator[Measure]:
    """Give readings of parts in use that pass their own critical limits."""
    if isinstance(document, list):
        for entry in document:
            yield from measures(entry)
        return
    if not isinstance(document, dict):
        return
    state = str(part(document, "Status", "State") or "Enabled")
    reading = number(document.get("ReadingCelsius", document.get("Reading")))
    name = str(document.get("Name") or document.get("FanName") or document.get("Id") or "a sensor")
    if reading is not None and state == "Enabled":
        upper = number(document.get("UpperThresholdCritical")) or number(
            part(document, "Thresholds", "UpperCritical", "Reading")
        )
        lower = number(document.get("LowerThresholdCritical")) or number(
            part(document, "Thresholds", "LowerCritical", "Reading")
        )
        if upper and reading >= upper:
            yield Measure(name, reading, upper)
        elif lower and reading < lower:
            yield Measure(name, reading, lower)
    for entry in document.values():
        if isinstance(entry, dict | list):
            yield from measures(entry)
