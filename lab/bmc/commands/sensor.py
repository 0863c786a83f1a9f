"""Sensor, SDR and DCMI power commands (IPMI 2.0 §33, §35; DCMI 1.5 §6.6)."""

from __future__ import annotations

import struct

from lab.bmc.commands.table import Command, Request
from lab.bmc.ipmi.message import Completion, NetFn, Refusal
from lab.bmc.sdr import SDR_VERSION, threshold_mask
from lab.bmc.sensors import Reading
from lab.bmc.spec import Privilege

SDR_ADDED_AT = 0x65000000
WHOLE_RECORD = 0xFF
DCMI_GROUP = 0xDC
POWER_SENSOR = 0x40
_SCANNING = 0xC0  # events and scanning enabled
_UNAVAILABLE = 0x20
_SUPPORT = 0x22  # non-modal update, reserve
_ACTIVE = 0x40
_DCMI_PARAMETERS = {
    1: b"\x00\x01\x07",  # power management; LAN, SOL and in-band channels
    2: b"\x00\x10\x00\x00\x00",  # SEL entries; no temperature sampling
    3: b"\x20\x00",  # the controller's address and channel
    4: b"\x01\xff\xff",  # primary LAN channel 1, no other
    5: b"\x01\x41",  # one averaging period: one second
}


def _sdr_info(request: Request) -> bytes:
    count = len(request.bmc.sdr.records)
    return struct.pack("<BHHIIB", SDR_VERSION, count, 0xFFFF, SDR_ADDED_AT, 0, _SUPPORT)


def _sdr_reserve(request: Request) -> bytes:
    return struct.pack("<H", request.bmc.sdr.reserve())


def _sdr(request: Request) -> bytes:
    reservation, record_id, offset, count = struct.unpack_from("<HHBB", request.data)
    if offset:
        request.bmc.sdr.check_reservation(reservation)
    following, record = request.bmc.sdr.get(record_id)
    if offset >= len(record):
        raise Refusal(Completion.OUT_OF_RANGE)
    part = record[offset:] if count == WHOLE_RECORD else record[offset : offset + count]
    return struct.pack("<H", following) + part


def _reading(request: Request) -> bytes:
    reading = request.bmc.sensors.read(request.data[0])
    missing = reading.raw is None and reading.states is None
    flags = _SCANNING | (_UNAVAILABLE if missing else 0)
    if not reading.model.analog:
        states = reading.states or 0
        return bytes((0, flags, states & 0xFF, 0x80 | states >> 8))
    return bytes((reading.raw or 0, flags, 0xC0 | reading.crossed))


def _thresholds(request: Request) -> bytes:
    model = request.bmc.sensors.model(request.data[0])
    if not model.analog:
        raise Refusal(Completion.ILLEGAL_FOR_RECORD)
    return bytes((threshold_mask(model.limits),)) + request.bmc.sensors.thresholds(model)


def _set_thresholds(request: Request) -> bytes:
    model = request.bmc.sensors.model(request.data[0])
    request.bmc.sensors.set_thresholds(model, request.data[1] & 0x3F, request.data[2:8])
    return b""


def _hysteresis(request: Request) -> bytes:
    return request.bmc.sensors.hysteresis(request.bmc.sensors.model(request.data[0]))


def _set_hysteresis(request: Request) -> bytes:
    request.bmc.sensors.set_hysteresis(request.bmc.sensors.model(request.data[0]), request.data[2:4])
    return b""


def _factors(request: Request) -> bytes:
    model = request.bmc.sensors.model(request.data[0])
    if not model.analog:
        raise Refusal(Completion.ILLEGAL_FOR_RECORD)
    scale = model.scale
    factors = (scale.m & 0xFF, scale.m >> 2 & 0xC0, 0, 0, 0, (scale.exponent & 0x0F) << 4)
    return bytes((min(request.data[1] + 1, 0xFF), *factors))


def _type(request: Request) -> bytes:
    model = request.bmc.sensors.model(request.data[0])
    return bytes((model.kind, model.reading_type))


def _event_enable(request: Request) -> bytes:
    request.bmc.sensors.model(request.data[0])
    return bytes((_SCANNING,))


def _event_status(request: Request) -> bytes:
    reading = request.bmc.sensors.read(request.data[0])
    missing = reading.raw is None and reading.states is None
    return bytes((_SCANNING | (_UNAVAILABLE if missing else 0),)) + struct.pack("<HH", _events(reading), 0)


def _events(reading: Reading) -> int:
    """Return the asserted events: for thresholds two bits each, "going low" and "going high"."""
    if not reading.model.analog:
        return reading.states or 0
    return sum(1 << (2 * bit + (bit > 2)) for bit in range(6) if reading.crossed >> bit & 1)


def _rearm(request: Request) -> bytes:
    request.bmc.sensors.model(request.data[0])
    return b""


def _power_reading(request: Request) -> bytes:
    if request.data[0] != DCMI_GROUP:
        raise Refusal(Completion.INVALID_FIELD)
    watts = int(request.bmc.sensors.read(POWER_SENSOR).value or 0)
    figures = (watts, watts - watts // 10, watts + watts // 10, watts)
    return bytes((DCMI_GROUP,)) + struct.pack("<4HIIB", *figures, request.bmc.clock.now(), 1000, _ACTIVE)


def _dcmi_capabilities(request: Request) -> bytes:
    """Say that power is measured; DCMI 1.5, parameter revision 2."""
    value = _DCMI_PARAMETERS.get(request.data[1])
    if request.data[0] != DCMI_GROUP or value is None:
        raise Refusal(Completion.INVALID_FIELD)
    return bytes((DCMI_GROUP, 1, 5, 2)) + value


COMMANDS = (
    Command(NetFn.SENSOR, 0x23, Privilege.USER, 2, _factors),
    Command(NetFn.SENSOR, 0x24, Privilege.OPERATOR, 4, _set_hysteresis),
    Command(NetFn.SENSOR, 0x25, Privilege.USER, 1, _hysteresis),
    Command(NetFn.SENSOR, 0x26, Privilege.OPERATOR, 8, _set_thresholds),
    Command(NetFn.SENSOR, 0x27, Privilege.USER, 1, _thresholds),
    Command(NetFn.SENSOR, 0x29, Privilege.USER, 1, _event_enable),
    Command(NetFn.SENSOR, 0x2A, Privilege.OPERATOR, 1, _rearm),
    Command(NetFn.SENSOR, 0x2B, Privilege.USER, 1, _event_status),
    Command(NetFn.SENSOR, 0x2D, Privilege.USER, 1, _reading),
    Command(NetFn.SENSOR, 0x2F, Privilege.USER, 1, _type),
    Command(NetFn.STORAGE, 0x20, Privilege.USER, 0, _sdr_info),
    Command(NetFn.STORAGE, 0x22, Privilege.USER, 0, _sdr_reserve),
    Command(NetFn.STORAGE, 0x23, Privilege.USER, 6, _sdr),
    Command(NetFn.GROUP, 0x01, Privilege.USER, 2, _dcmi_capabilities),
    Command(NetFn.GROUP, 0x02, Privilege.USER, 1, _power_reading),
)
