"""Turns records into values with pyghmi's tables; the only module that knows pyghmi.

pyghmi trusts its input: it loops for ever on 6-bit names, dies of Latin-1 ones and ignores
checksums. So names are rewritten before it sees them, and whatever it raises is one bad record.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyghmi.ipmi import events, fru, sdr
from pyghmi.ipmi.private import constants

from bmc.capability import Reading, SelEntry

_FULL, _COMPACT, _EVENT_ONLY, _FRU_LOCATOR = 0x01, 0x02, 0x03, 0x11
_NAME_AT = {_FULL: 47, _COMPACT: 31, _EVENT_ONLY: 16, _FRU_LOCATOR: 15}
_CLOCK_SET_SINCE = 0x20000000  # below this, a time stamp counts seconds since the BMC started
_HEALTH = ((4, "failed"), (2, "critical"), (1, "warning"), (0, "ok"))
_THRESHOLDS = (  # bit in the "readable" mask, offset in a full record, name
    (5, 36, "upper non-recoverable"),
    (4, 37, "upper critical"),
    (3, 38, "upper non-critical"),
    (2, 39, "lower non-recoverable"),
    (1, 40, "lower critical"),
    (0, 41, "lower non-critical"),
)
_SIX_BIT, _TEXT = 0x80, 0xC0


@dataclass(frozen=True, slots=True, eq=False)
class Sensor:
    """One sensor that can be read: where, and how to make sense of the answer."""

    number: int
    lun: int
    name: str
    kind: str
    entry: sdr.SDREntry
    thresholds: dict[str, float]


@dataclass(frozen=True, slots=True)
class SensorTable:
    """What a sensor repository says. `unread` counts records that made no sense."""

    sensors: dict[str, sdr.SDREntry] = field(default_factory=dict)  # pyghmi's names for pyghmi's use
    fru: dict[int, sdr.SDREntry] = field(default_factory=dict)
    readable: tuple[Sensor, ...] = ()
    unread: int = 0


@functools.lru_cache(maxsize=64)
def sensor_table(records: tuple[bytes, ...], manufacturer: int = 0, product: int = 0) -> SensorTable:
    """Decode a sensor repository; a record that makes no sense is counted and left out.

    Nodes of a kind have equal repositories, so what was decoded once is shared.
    """
    sensors: dict[str, sdr.SDREntry] = {}
    frus: dict[int, sdr.SDREntry] = {}
    readable: list[Sensor] = []
    unread = 0
    for record in records:
        try:
            entry = sdr.SDREntry(_with_plain_name(record), constants, False, manufacturer, product)
            if entry.sdrtype == sdr.TYPE_FRU:
                frus.setdefault(entry.fru_number, entry)
            elif entry.sdrtype == sdr.TYPE_SENSOR:
                key = f"{entry.sensor_owner}.{entry.sensor_number}.{entry.sensor_lun}"
                if key not in sensors and entry.readable:
                    readable.append(_sensor(entry, record))
                sensors.setdefault(key, entry)
        except Exception:  # noqa: BLE001  pyghmi raises whatever its indexing hits
            unread += 1
    return SensorTable(sensors, frus, tuple(readable), unread)


def _sensor(entry: sdr.SDREntry, record: bytes) -> Sensor:
    thresholds: dict[str, float] = {}
    if entry.rectype == _FULL and entry.reading_type == 1:
        for bit, offset, name in _THRESHOLDS:
            if record[18] & 1 << bit:
                value = _value(entry, record[offset])
                if value is not None:
                    thresholds[name] = value
    return Sensor(
        entry.sensor_number, entry.sensor_lun, entry.sensor_name, entry.sensor_type, entry, thresholds
    )


def _value(entry: sdr.SDREntry, raw: int) -> float | None:
    """Scale a raw byte; None where the record's formula has no value for it."""
    if entry.linearization is None or entry.linearization > 11:
        return None
    if entry.numeric_format in (1, 2) and raw > 127:
        raw -= 256 if entry.numeric_format == 2 else 255
    try:
        value = entry.decode_value(None, raw)
    except (ArithmeticError, ValueError):
        return None
    return _tidy(value) if isinstance(value, float) and math.isfinite(value) else None


def _tidy(value: float) -> float:
    return round(value, 6)


def _with_plain_name(record: bytes) -> bytearray:
    """Return `record` with its name as 8-bit ASCII, whatever it was coded in."""
    at = _NAME_AT.get(record[3])
    if at is None or len(record) <= at:
        return bytearray(record)
    coding, length = record[at] & 0xC0, record[at] & 0x1F
    raw = record[at + 1 : at + 1 + length]
    name = _six_bit(raw) if coding == _SIX_BIT else raw.decode("latin-1") if coding != 0x40 else None
    if name is None:  # BCD plus: pyghmi reads it well
        return bytearray(record)
    text = name.encode("ascii", "replace").rstrip(b"\x00 ")[:31]
    return bytearray(record[:at] + bytes((_TEXT | len(text),)) + text)


def _six_bit(raw: bytes) -> str:
    bits = int.from_bytes(raw, "little")
    return "".join(chr(0x20 + (bits >> 6 * place & 0x3F)) for place in range(len(raw) * 8 // 6))


def reading(sensor: Sensor, answer: bytes) -> Reading:
    """Decode the answer to Get Sensor Reading."""
    return _reading(sensor, answer[:4])


@functools.lru_cache(maxsize=16384)
def _reading(sensor: Sensor, answer: bytes) -> Reading:
    """Decode once what sensors of a kind say again and again: a fleet repeats itself."""
    blank = Reading(sensor.name, sensor.kind, None, "", "unknown", sensor.thresholds)
    if len(answer) < 2 or answer[1] & 0x20 or not answer[1] & 0x40:
        return blank
    padded = bytearray(answer.ljust(3, b"\x00"))
    try:
        seen = sensor.entry.decode_sensor_reading(None, padded)
    except Exception:  # noqa: BLE001  pyghmi raises whatever its arithmetic hits
        return blank
    value = seen.value if seen.value is None or math.isfinite(seen.value) else None
    return Reading(
        name=sensor.name,
        kind=sensor.kind,
        value=None if value is None else _tidy(value),
        unit=seen.units.strip() if value is not None else "",
        health=_health(seen.health),
        thresholds=sensor.thresholds,
        states=tuple(seen.states),
    )


def _health(bits: int) -> str:
    return next(word for bit, word in _HEALTH if bits & bit or not bit)


class _Silent:
    """Stands where pyghmi expects a live BMC; everything was fetched before."""

    class _oem:
        @staticmethod
        def process_event(*_: object) -> None:
            """Leave vendor records as they are."""

    @staticmethod
    def get_event_constants() -> object:
        return constants


class EventDecoder:
    """Decodes event log records with the names of one sensor table."""

    def __init__(self, table: SensorTable) -> None:
        self._table = table
        self._decoder = events.EventHandler(table, _Silent)

    def decode(self, record: bytes) -> SelEntry:
        """Decode one record of 16 bytes; what cannot be read is shown as hex, never dropped."""
        record = record[:16].ljust(16, b"\x00")
        try:
            seen = self._decoder._sel_decode(record)
        except Exception:  # noqa: BLE001  pyghmi raises whatever its indexing hits
            seen = {}
        known = isinstance(seen.get("event"), str) and bool(seen["event"])
        text = str(seen["event"]) if known else f"unknown event {record[7:].hex()}"
        extra = [str(seen["event_data"])] if seen.get("event_data") else []
        extra += self._triggered(record, seen)
        timed = record[2] < 0xE0
        return SelEntry(
            record_id=int.from_bytes(record[:2], "little"),
            time=event_time(int.from_bytes(record[3:7], "little")) if timed else None,
            sensor=self._sensor_name(record, seen),
            event=f"{text} ({', '.join(extra)})" if extra else text,
            severity=_severity(seen) if known else "unknown",
            asserted=not seen.get("deassertion", False),
            raw=record,
        )

    @staticmethod
    def _sensor_name(record: bytes, seen: dict[str, object]) -> str:
        if record[2] >= 0xC0:
            return "OEM"
        kind = str(seen.get("component_type") or "")
        name = str(seen.get("component") or "")
        if name.startswith("Sensor ") and kind:  # not in the table: say what it is and its number
            return f"{kind} #{record[11]:#04x}"
        return name or kind or f"#{record[11]:#04x}"

    def _triggered(self, record: bytes, seen: dict[str, object]) -> list[str]:
        """Say reading and threshold of a threshold event in the sensor's unit."""
        entry = self._table.sensors.get(f"{record[7]}.{record[11]}.{record[8] & 3}")
        if entry is None or record[12] & 0x7F != 1 or entry.rectype != _FULL:
            return []
        said = []
        for word, key in (("reading", "triggered_value"), ("threshold", "threshold_value")):
            raw = seen.get(key)
            value = _value(entry, raw) if isinstance(raw, int) else None
            if value is not None:
                said.append(f"{word} {value:g} {entry.unit_suffix.strip()}".strip())
        return said


def _severity(seen: dict[str, object]) -> str:
    bits = seen.get("severity", 0)
    word = _health(bits if isinstance(bits, int) else 0)
    return "critical" if word == "failed" else word


def event_time(seconds: int) -> datetime | None:
    """Return the time of an event; None where the BMC's clock was not set."""
    if seconds < _CLOCK_SET_SINCE or seconds == 0xFFFFFFFF:
        return None
    return datetime.fromtimestamp(seconds, UTC)


_FRU_FIELDS = {
    "Chassis type": "chassis type",
    "Chassis part number": "chassis part number",
    "Chassis serial number": "chassis serial",
    "Board manufacture date": "board date",
    "Board manufacturer": "board manufacturer",
    "Board product name": "board product",
    "Board serial number": "board serial",
    "Board model": "board part number",
    "Manufacturer": "product manufacturer",
    "Product name": "product name",
    "Model": "product part number",
    "Hardware Version": "product version",
    "Serial Number": "product serial",
    "Asset Number": "product asset tag",
}


def fru_fields(data: bytes) -> dict[str, str]:
    """Decode an inventory device. Areas that are broken are left out and named in `problem`."""
    fields: dict[str, str] = {}
    problems: list[str] = []
    if len(data) < 8 or data[0] & 0x0F != 1 or sum(data[:8]) & 0xFF:
        return {"problem": "the header is broken"} if data.strip(b"\xff\x00") else {}
    for place, area in ((2, "chassis"), (3, "board"), (4, "product")):
        start = 8 * data[place]
        if not start:
            continue
        body = data[start : start + 8 * data[start + 1]] if start + 1 < len(data) else b""
        if len(body) < 8 or len(body) != 8 * body[1]:
            problems.append(f"{area} area cut short")
        elif sum(body) & 0xFF:
            problems.append(f"{area} area has a bad checksum")
        else:
            fields |= _area_fields(body, place, problems, area)
    if problems:
        fields["problem"] = ", ".join(problems)
    return fields


def _area_fields(body: bytes, place: int, problems: list[str], area: str) -> dict[str, str]:
    """Let pyghmi read one area at a time: one that it cannot read hides no other."""
    header = bytearray(8)
    header[0], header[place] = 1, 1
    try:
        info = fru.FRU(rawdata=header + body).info or {}
    except Exception:  # noqa: BLE001  pyghmi raises whatever its indexing hits
        problems.append(f"{area} area does not parse")
        return {}
    return {
        name: text
        for key, name in _FRU_FIELDS.items()
        if isinstance(value := info.get(key), str) and (text := _printable(value))
    }


def _printable(value: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in value).strip()
