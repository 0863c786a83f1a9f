"""Sensors out of Redfish: the Sensor resources of today, and Thermal and Power of before."""

from __future__ import annotations

from collections.abc import Iterator

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
    for row in found.rows("Temperatures"):
        yield from _old(row, "Temperature", "ReadingCelsius", "°C")
    for row in found.rows("Fans"):
        unit = row.text("ReadingUnits") or row.text("Units") or "RPM"
        reading = "Reading" if row.number("Reading") is not None else "CurrentReading"
        yield from _old(row, "Fan", reading, _UNITS.get(unit, unit))


def power(found: Resource) -> Iterator[Reading]:
    """Read a Power resource."""
    for row in found.rows("Voltages"):
        yield from _old(row, "Voltage", "ReadingVolts", "V")
    for row in found.rows("PowerControl"):
        yield from _old(row, "Power", "PowerConsumedWatts", "W")
    for row in found.rows("PowerSupplies"):
        watts = "PowerInputWatts" if row.number("PowerInputWatts") is not None else "LastPowerOutputWatts"
        yield from _old(row, "Power Supply", watts, "W")


def _old(row: Resource, kind: str, value: str, unit: str) -> Iterator[Reading]:
    if row.text("Status", "State") == "Absent":
        return
    thresholds = {
        name: limit for key, name in _OLD_THRESHOLDS.items() if (limit := row.number(key)) is not None
    }
    health = row.health()
    off = row.text("Status", "State") not in (None, "Enabled")
    yield Reading(
        name=row.text("Name") or row.text("FanName") or row.text("MemberId") or kind,
        kind=kind,
        value=None if off else row.number(value),
        unit=unit,
        health=health,
        thresholds=thresholds,
    )
