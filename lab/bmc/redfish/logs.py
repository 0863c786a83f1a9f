"""The SEL in Redfish words, and the lifecycle log."""

from __future__ import annotations

import datetime
import struct
from collections import deque
from dataclasses import dataclass

from lab.bmc.redfish.answers import MANAGER, Json, resource
from lab.bmc.sensor_model import SENSORS, THRESHOLD, Kind

SITE_OFFSET = datetime.timezone(datetime.timedelta(hours=-6))
SEL_ENTRIES = f"{MANAGER}/LogServices/Sel/Entries"
LC_ENTRIES = f"{MANAGER}/LogServices/Lclog/Entries"
LC_LENGTH = 1000
_NAMES = {model.number: model.name for model in SENSORS}
_KINDS = {int(kind): kind.name.replace("_", " ").title() for kind in Kind}
_MODELS = {model.number: model for model in SENSORS}
_CRITICAL_OFFSETS = frozenset({2, 4, 9, 11})  # critical and non-recoverable thresholds crossed
_DEASSERTED = 0x80
_STATES: dict[tuple[int, int], tuple[str, str, str]] = {
    (Kind.POWER_SUPPLY, 3): ("PSU0003", "The power input for power supply is lost.", "Critical"),
    (Kind.POWER_SUPPLY, 1): ("PSU0001", "Power supply failed.", "Critical"),
    (Kind.INTRUSION, 0): ("SEC0033", "The chassis is open while the power is off.", "Critical"),
    (Kind.EVENT_LOG, 2): ("SEL9901", "Log cleared.", "OK"),
    (Kind.DRIVE, 1): ("PDR1016", "Drive is removed or has failed.", "Critical"),
    (Kind.CRITICAL_INTERRUPT, 10): ("PCI1318", "A fatal error was detected on a component.", "Critical"),
    (Kind.PROCESSOR, 0): ("CPU0000", "Internal error has occurred check for additional logs.", "Critical"),
    (Kind.WATCHDOG, 1): ("ASR0001", "The watchdog timer reset the system.", "Critical"),
}


def stamp(seconds: float) -> str:
    """Return a BMC's time as text, in the zone that the BMC is set to."""
    return datetime.datetime.fromtimestamp(seconds, SITE_OFFSET).isoformat()


def sel_entry(record: bytes) -> Json:
    """Return one SEL record as a log entry."""
    record_id, kind, seconds = struct.unpack_from("<HBI", record)
    message_id, message, severity = _read(record) if kind == 0x02 else ("", "OEM software event.", "OK")
    sensor_type = _sensor_type(record[10]) if kind == 0x02 else None
    return resource(
        f"{SEL_ENTRIES}/{record_id}",
        "LogEntry.v1_11_0.LogEntry",
        f"Log Entry {record_id}",
        Created=stamp(seconds),
        EntryType="SEL",
        EntryCode=[{"Member": "Deassert" if record[12] & _DEASSERTED else "Assert"}],
        SensorType=[{"Member": sensor_type}] if sensor_type else [],
        SensorNumber=record[11] if kind == 0x02 else None,
        MessageId=message_id,
        Message=message,
        Severity=severity,
    )


def _read(record: bytes) -> tuple[str, str, str]:
    number, direction, offset = record[11], record[12], record[13] & 0x0F
    name = _NAMES.get(number, f"Sensor {number}")
    if direction & 0x7F == THRESHOLD:
        return _read_threshold(record, name, offset)
    known = _STATES.get((record[10], offset))
    if known is None:
        return "SEL9900", f"{name}: state {offset}.", "OK"
    message_id, message, severity = known
    if direction & _DEASSERTED:
        return message_id, f"{name}: no longer: {message}", "OK"
    return message_id, message if record[10] == Kind.EVENT_LOG else f"{name}: {message}", severity


def _read_threshold(record: bytes, name: str, offset: int) -> tuple[str, str, str]:
    side = "lower" if offset < 6 else "upper"
    critical = offset in _CRITICAL_OFFSETS
    level = "critical" if critical else "warning"
    model = _MODELS.get(record[11])
    value = f" ({model.scale.value(record[14]):g})" if model else ""
    if record[12] & _DEASSERTED:
        return "TMP0117", f"{name} is within range{value}.", "OK"
    beyond = "less than" if side == "lower" else "greater than"
    text = f"{name} is {beyond} the {side} {level} threshold{value}."
    return ("TMP0121" if critical else "TMP0120"), text, "Critical" if critical else "Warning"


def _sensor_type(number: int) -> str:
    return _KINDS.get(number, "OEM")


@dataclass(frozen=True, slots=True)
class LifecycleEntry:
    """One line of the lifecycle log."""

    number: int
    seconds: int
    message_id: str
    message: str
    category: str
    severity: str

    def describe(self) -> Json:
        return resource(
            f"{LC_ENTRIES}/{self.number}",
            "LogEntry.v1_11_0.LogEntry",
            f"Log Entry {self.number}",
            Created=stamp(self.seconds),
            EntryType="Oem",
            OemRecordFormat="Dell",
            MessageId=self.message_id,
            Message=self.message,
            Severity=self.severity,
            Oem={"Dell": {"Category": self.category}},
        )


class LifecycleLog:
    """The newest entries, numbered from 1; `clock` gives the BMC's seconds."""

    def __init__(self) -> None:
        self._entries: deque[LifecycleEntry] = deque(maxlen=LC_LENGTH)
        self._next = 1

    def add(
        self,
        seconds: int,
        message_id: str,
        message: str,
        *,
        category: str = "System Health",
        severity: str = "OK",
    ) -> None:
        entry = LifecycleEntry(self._next, seconds, message_id, message, category, severity)
        self._entries.append(entry)
        self._next += 1

    def newest_first(self) -> tuple[LifecycleEntry, ...]:
        return tuple(reversed(self._entries))
