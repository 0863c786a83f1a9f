"""Device and session commands (IPMI 2.0 §20 and §22)."""

from __future__ import annotations

import struct

from lab.bmc.commands.table import LAN_CHANNEL, Command, Request
from lab.bmc.ipmi.cipher import SUITES
from lab.bmc.ipmi.message import Completion, NetFn, Refusal
from lab.bmc.ipmi.session import Session
from lab.bmc.spec import Privilege

SUITE_CHUNK = 16
NO_SUCH_SESSION = 0x87
LEVEL_NOT_AVAILABLE, LEVEL_TOO_HIGH = 0x80, 0x81
DEVICE_REVISION = 0x01
_IPMI_VERSION = 0x02
_SUPPORTS = 0x8F  # chassis, FRU, SEL, SDR repository, sensors
_RMCPP = 0x10


def _device_id(request: Request) -> bytes:
    hardware = request.bmc.spec.hardware
    major, minor = hardware.firmware
    minor_bcd = minor // 10 << 4 | minor % 10
    head = bytes((0x20, DEVICE_REVISION, major & 0x7F, minor_bcd, _IPMI_VERSION, _SUPPORTS))
    return head + struct.pack("<I", hardware.manufacturer_id)[:3] + struct.pack("<HI", hardware.product_id, 0)


def _cold_reset(request: Request) -> bytes:
    # The answer still goes out: the session's keys are at hand until the reset takes hold.
    request.in_session()
    return b""


def _self_test(request: Request) -> bytes:  # noqa: ARG001  # the emulator is always well
    return b"\x55\x00"


def _guid(request: Request) -> bytes:
    return request.bmc.guid_bytes


def _auth_capabilities(request: Request) -> bytes:
    wants_extended = bool(request.data[0] & 0x80)
    request.channel()
    if not wants_extended:
        return bytes((LAN_CHANNEL, 0, 0x04, 0, 0, 0, 0, 0))
    status = 0x04 | (0x20 if request.bmc.kg else 0)  # named users; K_g set
    return bytes((LAN_CHANNEL, 0x80, status, 0x02, 0, 0, 0, 0))


def _cipher_suites(request: Request) -> bytes:
    request.channel()
    suites = [SUITES[number] for number in sorted(request.bmc.spec.suites)]
    index = request.data[2]
    if index & 0x80:
        listed = b"".join(suite.record for suite in suites)
    else:
        listed = bytes(sorted({tag for suite in suites for tag in suite.record[2:]}))
    start = (index & 0x3F) * SUITE_CHUNK
    return bytes((LAN_CHANNEL,)) + listed[start : start + SUITE_CHUNK]


def _set_privilege(request: Request) -> bytes:
    session, wanted = request.in_session(), request.data[0] & 0x0F
    if wanted:
        if wanted == Privilege.CALLBACK or wanted > Privilege.OEM:
            raise Refusal(LEVEL_NOT_AVAILABLE)
        if wanted > session.privilege_limit:
            raise Refusal(LEVEL_TOO_HIGH)
        session.privilege = Privilege(wanted)
    return bytes((session.privilege,))


def _close_session(request: Request) -> bytes:
    own, number = request.in_session(), struct.unpack_from("<I", request.data)[0]
    target = request.bmc.sessions.get(number) if number else _by_handle(request)
    if target is None:
        raise Refusal(NO_SUCH_SESSION)
    if target is not own:
        if own.privilege < Privilege.ADMINISTRATOR:
            raise Refusal(Completion.INSUFFICIENT_PRIVILEGE)
        request.bmc.sessions.close(target)
    return b""  # its own session ends when the answer is out


def _by_handle(request: Request) -> Session | None:
    handle = request.data[4] if len(request.data) > 4 else 0
    return next((session for session in request.bmc.sessions.active if session.handle == handle), None)


def _session_info(request: Request) -> bytes:
    sessions = request.bmc.sessions.active
    index = request.data[0]
    if index == 0:
        found: Session | None = request.in_session()
    elif index == 0xFE:
        handle = request.data[1] if len(request.data) > 1 else 0
        found = next((session for session in sessions if session.handle == handle), None)
    elif index == 0xFF:
        number = struct.unpack_from("<I", request.data.ljust(5, b"\0"), 1)[0]
        found = next((session for session in sessions if session.number == number), None)
    else:
        found = sessions[index - 1] if index <= len(sessions) else None
    head = bytes((found.handle if found else 0, request.bmc.sessions.limit, len(sessions)))
    return head + _describe(found) if found else head


def _describe(session: Session) -> bytes:
    user_id = session.account.user_id if session.account else 0
    address = bytes(int(part) for part in session.address[0].split("."))
    who = bytes((user_id, session.privilege, _RMCPP | LAN_CHANNEL))
    return who + address + bytes(6) + struct.pack("<H", session.address[1])


COMMANDS = (
    Command(NetFn.APP, 0x01, Privilege.USER, 0, _device_id),
    Command(NetFn.APP, 0x02, Privilege.ADMINISTRATOR, 0, _cold_reset),
    Command(NetFn.APP, 0x03, Privilege.ADMINISTRATOR, 0, _cold_reset),
    Command(NetFn.APP, 0x04, Privilege.USER, 0, _self_test),
    Command(NetFn.APP, 0x08, Privilege.USER, 0, _guid),
    Command(NetFn.APP, 0x37, None, 0, _guid),
    Command(NetFn.APP, 0x38, None, 2, _auth_capabilities),
    Command(NetFn.APP, 0x3B, Privilege.CALLBACK, 1, _set_privilege),
    Command(NetFn.APP, 0x3C, Privilege.CALLBACK, 4, _close_session),
    Command(NetFn.APP, 0x3D, Privilege.USER, 1, _session_info),
    Command(NetFn.APP, 0x54, None, 3, _cipher_suites),
)
