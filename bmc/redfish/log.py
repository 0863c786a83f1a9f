"""Log entries as event log entries; the spellings of four makers."""

from __future__ import annotations

import json

from bmc.capability import SelEntry
from bmc.redfish.resource import Resource, parse_time

_SEVERITIES = {
    "OK": "ok",
    "Informational": "ok",
    "Warning": "warning",
    "Caution": "warning",
    "Critical": "critical",
    "Fatal": "critical",
}


def entry(found: Resource, index: int) -> SelEntry:
    """Read a LogEntry; `index` stands in where its id is no number."""
    own = found.text("Id") or ""
    return SelEntry(
        record_id=int(own) if own.isascii() and own.isdigit() else index,
        time=parse_time(found.text("Created") or found.text("EventTimestamp")),
        sensor=_sensor(found),
        event=found.text("Message") or found.text("MessageId") or "no text",
        severity=_SEVERITIES.get(found.text("Severity") or found.text("MessageSeverity") or "", "unknown"),
        asserted="Deassert" not in str(found.at("EntryCode")),
        raw=json.dumps(found.data, sort_keys=True).encode(),
    )


def _sensor(found: Resource) -> str:
    kind = found.text("SensorType")
    if kind is None:  # some send a list of objects
        kind = next((name for row in found.rows("SensorType") if (name := row.text("Member"))), None)
    return (
        found.text("Oem", "Supermicro", "RawEventData", "SensorName")
        or kind
        or found.text("Links", "OriginOfCondition", "@odata.id")
        or found.text("MessageId")
        or found.text("EntryType")
        or ""
    )
