"""The SDR repository: the sensor model as records (IPMI 2.0 §43)."""

from __future__ import annotations

import struct
from functools import cache

from lab.bmc.ipmi.message import BMC_ADDRESS, Completion, Refusal
from lab.bmc.sensor_model import SENSORS, Entity, Limits, SensorModel

FULL, COMPACT, FRU_LOCATOR, MC_LOCATOR = 0x01, 0x02, 0x11, 0x12
SDR_VERSION = 0x51
ASCII = 0xC0
LAST = 0xFFFF
FRU_NAMES = {0: "System Board", 1: "PSU1", 2: "PSU2"}
_FRU_ENTITIES = {0: (Entity.SYSTEM_BOARD, 1), 1: (Entity.POWER_SUPPLY, 1), 2: (Entity.POWER_SUPPLY, 2)}
_INITIALISED = 0x7F
_CAPABILITIES = 0x68  # re-arms itself; hysteresis and thresholds can be read and set
_NO_ANALOG = 0xC0
_NOMINAL_GIVEN = 0x01


class SdrRepository:
    """Records in order; ids begin at 1. Only reservations change."""

    def __init__(self) -> None:
        self.records = _records()
        self._reservation = 0

    def reserve(self) -> int:
        self._reservation = self._reservation % 0xFFFF + 1
        return self._reservation

    def check_reservation(self, reservation: int) -> None:
        if reservation != self._reservation or not reservation:
            raise Refusal(Completion.RESERVATION_LOST)

    def get(self, record_id: int) -> tuple[int, bytes]:
        """Return the id of the record after this one, and this one."""
        count = len(self.records)
        number = {0: 1, LAST: count}.get(record_id, record_id)
        if not 1 <= number <= count:
            raise Refusal(Completion.NOT_PRESENT)
        return number + 1 if number < count else LAST, self.records[number - 1]


def threshold_bytes(model: SensorModel) -> bytes:
    """Return the raw thresholds as Get Sensor Thresholds orders them, lower ones first."""
    limits = _ordered(model.limits)
    return bytes(model.scale.raw(limit) if limit is not None else 0 for limit in limits)


def threshold_mask(limits: Limits) -> int:
    """Return which thresholds there are: bit 0 is lower non-critical, bit 5 upper non-recoverable."""
    return sum(1 << bit for bit, limit in enumerate(_ordered(limits)) if limit is not None)


def _ordered(limits: Limits) -> tuple[float | None, ...]:
    return limits.lnc, limits.lc, limits.lnr, limits.unc, limits.uc, limits.unr


@cache
def _records() -> tuple[bytes, ...]:
    """All BMCs have the same records, so they share them."""
    bodies = [(MC_LOCATOR, _mc_locator())]
    bodies += [(FULL, _full(model)) if model.analog else (COMPACT, _compact(model)) for model in SENSORS]
    bodies += [(FRU_LOCATOR, _fru_locator(fru_id, name)) for fru_id, name in FRU_NAMES.items()]
    return tuple(_with_header(number, kind, body) for number, (kind, body) in enumerate(bodies, start=1))


def _with_header(number: int, kind: int, body: bytes) -> bytes:
    return struct.pack("<HBBB", number, SDR_VERSION, kind, len(body)) + body


def _name(text: str) -> bytes:
    data = text.encode("ascii")
    return bytes((ASCII | len(data),)) + data


def _key_and_type(model: SensorModel) -> bytes:
    key = (BMC_ADDRESS, 0, model.number, model.entity, model.instance, _INITIALISED, _CAPABILITIES)
    return bytes((*key, model.kind, model.reading_type))


def _event_masks(mask: int) -> tuple[int, int]:
    """Return the assertion and de-assertion masks for the thresholds in `mask`."""
    lower, upper = mask & 0x07, mask >> 3 & 0x07
    # Two bits a threshold, "going low" first: lower ones assert going low, upper ones going high.
    events = sum(1 << 2 * bit for bit in range(3) if lower >> bit & 1)
    events |= sum(1 << 7 + 2 * bit for bit in range(3) if upper >> bit & 1)
    return events | lower << 12, events | upper << 12


def _full(model: SensorModel) -> bytes:
    mask = threshold_mask(model.limits)
    asserts, deasserts = _event_masks(mask)
    scale = model.scale
    nominal = scale.raw(model.nominal)
    lnc, lc, lnr, unc, uc, unr = threshold_bytes(model)
    return (
        _key_and_type(model)
        + struct.pack("<HHH", asserts, deasserts, mask << 8 | mask)
        + bytes((0, model.unit, 0, 0))
        + bytes((scale.m & 0xFF, scale.m >> 2 & 0xC0, 0, 0, 0, (scale.exponent & 0x0F) << 4))
        + bytes((_NOMINAL_GIVEN, nominal, 0, 0, 0xFF, 0))
        + bytes((unr, uc, unc, lnr, lc, lnc, 1, 1, 0, 0, 0))
        + _name(model.name)
    )


def _compact(model: SensorModel) -> bytes:
    masks = struct.pack("<HHH", model.possible, model.possible, model.possible)
    sharing = struct.pack("<H", 1)
    return _key_and_type(model) + masks + bytes((_NO_ANALOG, 0, 0)) + sharing + bytes(6) + _name(model.name)


def _fru_locator(fru_id: int, name: str) -> bytes:
    entity, instance = _FRU_ENTITIES[fru_id]
    return bytes((BMC_ADDRESS, fru_id, 0x80, 0, 0, 0x10, 0, entity, instance, 0)) + _name(name)


def _mc_locator() -> bytes:
    capabilities = 0x8F  # chassis, FRU, SEL, SDR repository, sensors
    return bytes((BMC_ADDRESS, 0, 0, capabilities, 0, 0, 0, 0x2E, 1, 0)) + _name("BMC")
