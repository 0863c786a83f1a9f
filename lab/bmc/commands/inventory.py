"""FRU inventory commands (IPMI 2.0 §34)."""

from __future__ import annotations

import struct

from lab.bmc.commands.table import Command, Request
from lab.bmc.ipmi.message import Completion, NetFn, Refusal
from lab.bmc.spec import Privilege

WRITE_PROTECTED = 0x80
BY_BYTES = 0x00


def _content(request: Request) -> bytes:
    content = request.bmc.fru.read(request.data[0])
    if content is None:
        raise Refusal(Completion.NOT_PRESENT)
    return content


def _area_info(request: Request) -> bytes:
    return struct.pack("<HB", len(_content(request)), BY_BYTES)


def _read(request: Request) -> bytes:
    offset, count = struct.unpack_from("<HB", request.data, 1)
    content = _content(request)
    if count > request.bmc.spec.fru_read_limit:
        raise Refusal(Completion.FIELD_LENGTH_EXCEEDED)
    if offset >= len(content):
        raise Refusal(Completion.OUT_OF_RANGE)
    part = content[offset : offset + count]
    return bytes((len(part),)) + part


def _write(request: Request) -> bytes:
    _content(request)
    raise Refusal(WRITE_PROTECTED)


COMMANDS = (
    Command(NetFn.STORAGE, 0x10, Privilege.USER, 1, _area_info),
    Command(NetFn.STORAGE, 0x11, Privilege.USER, 4, _read),
    Command(NetFn.STORAGE, 0x12, Privilege.OPERATOR, 3, _write),
)
