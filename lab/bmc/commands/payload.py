"""Payload and SOL commands (IPMI 2.0 §24 and §26)."""

from __future__ import annotations

import struct

from lab.bmc.commands.table import LAN_CHANNEL, Command, Request
from lab.bmc.ipmi.message import Completion, NetFn, Refusal
from lab.bmc.ipmi.packet import Payload
from lab.bmc.ipmi.sol import DISABLED, MAX_DATA
from lab.bmc.spec import Privilege

PAYLOAD_VERSION = 0x10  # 1.0
NO_VLAN = 0xFFFF
CANNOT_WITHOUT_ENCRYPTION, CANNOT_WITH_ENCRYPTION = 0x84, 0x83
NOT_SUPPORTED = 0x80
_WITH_ENCRYPTION = 0x80
_IPMI_AND_SOL = 0x0003
_SETUP_PAYLOADS = 0x003F


def _require_sol(request: Request) -> None:
    if request.data[0] & 0x3F != Payload.SOL or request.data[1] & 0x0F != 1:
        raise Refusal(DISABLED)


def _activate(request: Request) -> bytes:
    _require_sol(request)
    session = request.in_session()
    if session.privilege < request.bmc.sol.settings.privilege:
        raise Refusal(Completion.INSUFFICIENT_PRIVILEGE)
    encrypted = bool(request.data[2] & _WITH_ENCRYPTION)
    if encrypted and not session.suite.confidentiality:
        raise Refusal(CANNOT_WITH_ENCRYPTION)
    request.bmc.sol.activate(session, encrypted=encrypted)
    return bytes(4) + struct.pack("<HHHH", MAX_DATA, MAX_DATA, request.bmc.port, NO_VLAN)


def _deactivate(request: Request) -> bytes:
    _require_sol(request)
    request.bmc.sol.deactivate(request.in_session())
    return b""


def _activation_status(request: Request) -> bytes:
    if request.data[0] & 0x3F != Payload.SOL:
        raise Refusal(Completion.INVALID_FIELD)
    return bytes((1, 1 if request.bmc.sol.owner else 0, 0))


def _instance_info(request: Request) -> bytes:
    _require_sol(request)
    owner = request.bmc.sol.owner
    return struct.pack("<I", owner.number if owner else 0) + bytes((1 if owner else 0,)) + bytes(7)


def _channel_support(request: Request) -> bytes:
    request.channel()
    return struct.pack("<HHHH", _IPMI_AND_SOL, _SETUP_PAYLOADS, 0, 0)


def _channel_version(request: Request) -> bytes:
    request.channel()
    kind = request.data[1] & 0x3F
    if kind not in (Payload.IPMI, Payload.SOL, *range(Payload.OPEN_REQUEST, Payload.RAKP4 + 1)):
        raise Refusal(NOT_SUPPORTED)
    return bytes((PAYLOAD_VERSION,))


def _user_access(request: Request) -> bytes:
    request.channel()
    row = request.bmc.users.row(request.data[1] & 0x3F)
    if row is None:
        raise Refusal(Completion.OUT_OF_RANGE)
    return bytes((0x02 if row.sol else 0, 0, 0, 0))


def _set_user_access(request: Request) -> bytes:
    request.channel()
    row = request.bmc.users.row(request.data[1] & 0x3F)
    if row is None:
        raise Refusal(Completion.OUT_OF_RANGE)
    if request.data[2] & 0x02:
        row.sol = not request.data[1] & 0x40
    return b""


def _set_sol(request: Request) -> bytes:
    request.channel()
    settings, parameter, value = request.bmc.sol.settings, request.data[1], request.data[2:]
    if parameter == 1:
        settings.enabled = bool(value[0] & 1)
    elif parameter == 3 and len(value) > 1:
        settings.accumulate_5ms, settings.threshold = max(1, value[0]), max(1, min(value[1], MAX_DATA))
    elif parameter == 4 and len(value) > 1:
        settings.retries, settings.retry_10ms = value[0] & 7, max(1, value[1])
    elif parameter not in (0, 2, 5, 6):
        raise Refusal(NOT_SUPPORTED)
    return b""


def _get_sol(request: Request) -> bytes:
    request.channel()
    settings = request.bmc.sol.settings
    if request.data[0] & 0x80:
        return b"\x11"
    values = {
        0: b"\x00",
        1: bytes((settings.enabled,)),
        2: bytes((0xC0 | settings.privilege,)),
        3: bytes((settings.accumulate_5ms, settings.threshold)),
        4: bytes((settings.retries, settings.retry_10ms)),
        5: b"\x0a",  # 115.2 kbit/s
        6: b"\x0a",
        7: bytes((LAN_CHANNEL,)),
        8: struct.pack("<H", request.bmc.port),
    }
    if request.data[1] not in values:
        raise Refusal(NOT_SUPPORTED)
    return b"\x11" + values[request.data[1]]


COMMANDS = (
    Command(NetFn.APP, 0x48, Privilege.USER, 6, _activate),
    Command(NetFn.APP, 0x49, Privilege.USER, 6, _deactivate),
    Command(NetFn.APP, 0x4A, Privilege.USER, 1, _activation_status),
    Command(NetFn.APP, 0x4B, Privilege.USER, 2, _instance_info),
    Command(NetFn.APP, 0x4C, Privilege.ADMINISTRATOR, 6, _set_user_access),
    Command(NetFn.APP, 0x4D, Privilege.OPERATOR, 2, _user_access),
    Command(NetFn.APP, 0x4E, Privilege.USER, 1, _channel_support),
    Command(NetFn.APP, 0x4F, Privilege.USER, 2, _channel_version),
    Command(NetFn.TRANSPORT, 0x21, Privilege.ADMINISTRATOR, 3, _set_sol),
    Command(NetFn.TRANSPORT, 0x22, Privilege.USER, 4, _get_sol),
)
