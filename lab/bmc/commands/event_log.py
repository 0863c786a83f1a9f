"""SEL commands (IPMI 2.0 §31)."""

from __future__ import annotations

import struct

from lab.bmc.commands.table import Command, Request
from lab.bmc.ipmi.message import Completion, NetFn, Refusal
from lab.bmc.sel import RECORD_SIZE
from lab.bmc.spec import Privilege

SEL_VERSION = 0x51
ERASE, STATUS = 0xAA, 0x00
WHOLE_RECORD = 0xFF
_RESERVE_AND_DELETE = 0x0A  # what the log supports: reserve, delete
_OVERFLOW = 0x80


def _info(request: Request) -> bytes:
    sel = request.bmc.sel
    sel.require_idle()
    support = _RESERVE_AND_DELETE | (_OVERFLOW if sel.overflow else 0)
    free = min(sel.free_bytes, 0xFFFF)
    return struct.pack("<BHHIIB", SEL_VERSION, len(sel), free, sel.added_at, sel.erased_at, support)


def _allocation(request: Request) -> bytes:
    sel = request.bmc.sel
    free = min(sel.capacity - len(sel), 0xFFFF)
    return struct.pack("<HHHHB", min(sel.capacity, 0xFFFF), RECORD_SIZE, free, free, 1)


def _reserve(request: Request) -> bytes:
    request.bmc.sel.require_idle()
    return struct.pack("<H", request.bmc.sel.reserve())


def _entry(request: Request) -> bytes:
    reservation, record_id, offset, count = struct.unpack_from("<HHBB", request.data)
    sel = request.bmc.sel
    sel.require_idle()
    if offset:
        sel.check_reservation(reservation)
    if offset >= RECORD_SIZE or (count != WHOLE_RECORD and offset + count > RECORD_SIZE):
        raise Refusal(Completion.OUT_OF_RANGE)
    following, record = sel.get(record_id)
    part = record[offset:] if count == WHOLE_RECORD else record[offset : offset + count]
    return struct.pack("<H", following) + part


def _add(request: Request) -> bytes:
    request.bmc.sel.require_idle()
    return struct.pack("<H", request.bmc.sel.add_record(request.data[:RECORD_SIZE]))


def _delete(request: Request) -> bytes:
    reservation, record_id = struct.unpack_from("<HH", request.data)
    request.bmc.sel.require_idle()
    request.bmc.sel.check_reservation(reservation)
    return struct.pack("<H", request.bmc.sel.delete(record_id))


def _clear(request: Request) -> bytes:
    reservation, word, operation = struct.unpack_from("<H3sB", request.data)
    if word != b"CLR" or operation not in (ERASE, STATUS):
        raise Refusal(Completion.INVALID_FIELD)
    if operation == ERASE:
        request.bmc.sel.check_reservation(reservation)
        request.bmc.clear_sel()
    return bytes((0 if request.bmc.sel.erasing else 1,))


def _time(request: Request) -> bytes:
    return struct.pack("<I", request.bmc.clock.now())


def _set_time(request: Request) -> bytes:
    request.bmc.clock.set(struct.unpack_from("<I", request.data)[0])
    return b""


def _utc_offset(request: Request) -> bytes:
    return struct.pack("<h", request.bmc.clock.utc_offset_min)


def _set_utc_offset(request: Request) -> bytes:
    request.bmc.clock.utc_offset_min = struct.unpack_from("<h", request.data)[0]
    return b""


def _platform_event(request: Request) -> bytes:
    """Log an event that a console sends; over LAN the generator is the console's software id."""
    _version, kind, number, direction, data = struct.unpack_from("<BBBB3s", request.data.ljust(7, b"\xff"))
    asserted = not direction & 0x80
    request.bmc.sel.add(kind, number, data, event_type=direction & 0x7F, asserted=asserted)
    return b""


COMMANDS = (
    Command(NetFn.SENSOR, 0x02, Privilege.OPERATOR, 5, _platform_event),
    Command(NetFn.STORAGE, 0x40, Privilege.USER, 0, _info),
    Command(NetFn.STORAGE, 0x41, Privilege.USER, 0, _allocation),
    Command(NetFn.STORAGE, 0x42, Privilege.USER, 0, _reserve),
    Command(NetFn.STORAGE, 0x43, Privilege.USER, 6, _entry),
    Command(NetFn.STORAGE, 0x44, Privilege.OPERATOR, RECORD_SIZE, _add),
    Command(NetFn.STORAGE, 0x46, Privilege.OPERATOR, 4, _delete),
    Command(NetFn.STORAGE, 0x47, Privilege.OPERATOR, 6, _clear),
    Command(NetFn.STORAGE, 0x48, Privilege.USER, 0, _time),
    Command(NetFn.STORAGE, 0x49, Privilege.OPERATOR, 4, _set_time),
    Command(NetFn.STORAGE, 0x5C, Privilege.USER, 0, _utc_offset),
    Command(NetFn.STORAGE, 0x5D, Privilege.OPERATOR, 2, _set_utc_offset),
)
