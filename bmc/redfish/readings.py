"""Sensors out of Redfish: the Sensor resources of today, and Thermal and Power of before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bmc.capability import Reading
from bmc.redfish.resource import Resource

_UNITS = {"Cel": "°C", "Percent": "%"}
_KINDS = {"Rotational": "Fan"}
_NEW_THRESHOLDS = {
    "UpperFatal": "upper non-recoverable",
    "UpperCritical": "upper critical",
    "UpperCaution": "upper non-critical",
    "LowerFatal": "lower non-recoverable",
    "LowerCritical": "lower critical",
    "LowerCaution": "lower non-critical",
}
_OLD_THRESHOLDS = {
    "UpperThresholdFatal": "upper non-recoverable",
    "UpperThresholdCritical": "upper critical",
    "UpperThresholdNonCritical": "upper non-critical",
    "LowerThresholdFatal": "lower non-recoverable",
    "LowerThresholdCritical": "lower critical",
    "LowerThresholdNonCritical": "lower non-critical",
}


def sensor(found: Resource) -> Reading | None:
    """Read a Sensor resource; None for a part that is not there."""
    if found.text("Status", "State") == "Absent":
        return None
    unit = found.text("ReadingUnits") or ""
    kind = found.text("ReadingType") or ""
    thresholds = {
        name: value
        for key, name in _NEW_THRESHOLDS.items()
        if (value := found.number("Thresholds", key, "Reading")) is not None
    }
    return Reading(
        name=found.text("Name") or found.text("Id") or found.path,
        kind=_KINDS.get(kind, kind),
        value=found.number("Reading"),
        unit=_UNITS.get(unit, unit),
        health=found.health(),
        thresholds=thresholds,
    )


def thermal(found: Resource) -> Iterator[Reading]:
    """Read a Thermal resource."""
    for name, row in _named(found.rows("Temperatures"), "Temperature"):
        yield from _old(row, name, "Temperature", ("ReadingCelsius", "°C"))
    for name, row in _named(found.rows("Fans"), "Fan"):
        unit = row.text("ReadingUnits") or row.text("Units") or "RPM"
        reading = "Reading" if row.number("Reading") is not None else "CurrentReading"
        yield from _old(row, name, "Fan", (reading, _UNITS.get(unit, unit)))


def power(found: Resource) -> Iterator[Reading]:
    """Read a Power resource."""
    for name, row in _named(found.rows("Voltages"), "Voltage"):
        yield from _old(row, name, "Voltage", ("ReadingVolts", "V"))
    for name, row in _named(found.rows("PowerControl"), "Power"):
        yield from _old(row, name, "Power", ("PowerConsumedWatts", "W"))
    for name, row in _named(found.rows("PowerSupplies"), "Power Supply"):
        watts = "PowerInputWatts" if row.number("PowerInputWatts") is not None else "LastPowerOutputWatts"
        yield from _old(row, name, "Power Supply", (watts, "W"))


def _named(rows: Sequence[Resource], kind: str) -> Iterator[tuple[str, Resource]]:
    """Give each row a name of its own: some BMCs call all alike, or by a number, or not at all."""
    names = [row.text("Name") or row.text("FanName") or kind for row in rows]
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        alike = names.count(name) > 1
        yield (f"{name} {row.text('MemberId') or place}" if alike else name), row


def _old(row: Resource, name: str, kind: str, value: tuple[str, str]) -> Iterator[Reading]:
    """Read one row; `value` is where its reading stands, and the unit."""
    if row.text("Status", "State") == "Absent":
        return
    thresholds = {
        name: limit for key, name in _OLD_THRESHOLDS.items() if (limit := row.number(key)) is not None
    }
    health = row.health()
    off = row.text("Status", "State") not in (None, "Enabled")
    yield Reading(
        name=name,
        kind=kind,
        value=None if off else row.number(value[0]),
        unit=value[1],
        health=health,
        thresholds=thresholds,
    )
