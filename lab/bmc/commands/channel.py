"""LAN, channel, user and watchdog commands (IPMI 2.0 §22, §23, §27)."""

from __future__ import annotations

from lab.bmc.commands.table import Command, Request
from lab.bmc.ipmi.message import Completion, NetFn, Refusal
from lab.bmc.spec import Privilege
from lab.bmc.users import MAX_USERS, NAME_SIZE, PASSWORD_SIZE, Account
from lab.bmc.watchdog import NOT_INITIALISED, TICK_S

PARAMETER_REVISION = 0x11
ALWAYS_AVAILABLE = 0x02
LAN_802_3, IPMB_PROTOCOL, MULTI_SESSION = 0x04, 0x01, 0x80
IPMI_FORUM = b"\xf2\x1b\x00"
PASSWORD_WRONG, PASSWORD_SIZE_WRONG = 0x80, 0x81
KG_SELECTOR = 0x01
_REVISION_ONLY = 0x80
_DISABLE, _ENABLE, _SET, _TEST = range(4)
_RUNNING = 0x40


def _get_lan(request: Request) -> bytes:
    request.channel()
    if request.data[0] & _REVISION_ONLY:
        return bytes((PARAMETER_REVISION,))
    return bytes((PARAMETER_REVISION,)) + request.bmc.lan.get(request.data[1], request.data[2])


def _set_lan(request: Request) -> bytes:
    request.channel()
    request.bmc.lan.set(request.data[1], request.data[2:])
    return b""


def _channel_info(request: Request) -> bytes:
    number = request.channel()
    sessions = min(len(request.bmc.sessions.active), 0x3F)
    return bytes((number, LAN_802_3, IPMB_PROTOCOL, MULTI_SESSION | sessions)) + IPMI_FORUM + bytes(2)


def _channel_access(request: Request) -> bytes:
    request.channel()
    if request.data[1] >> 6 not in (1, 2):
        raise Refusal(Completion.INVALID_FIELD)
    return bytes((ALWAYS_AVAILABLE, Privilege.ADMINISTRATOR))


def _set_channel_access(request: Request) -> bytes:
    request.channel()  # taken, and nothing of it changes: the lab must stay reachable
    return b""


def _user(request: Request, index: int) -> Account:
    row = request.bmc.users.row(request.data[index] & 0x3F)
    if row is None:
        raise Refusal(Completion.OUT_OF_RANGE)
    return row


def _user_access(request: Request) -> bytes:
    request.channel()
    row = _user(request, 1)
    status = 0x40 if row.enabled else 0x80
    flags = 0x40 * row.callback_only | 0x20 * row.link_auth | 0x10 * row.messaging
    return bytes((MAX_USERS, status | request.bmc.users.enabled_count, 1, flags | row.privilege))


def _set_user_access(request: Request) -> bytes:
    request.channel()
    row, flags = _user(request, 1), request.data[0]
    if flags & 0x80:
        row.callback_only, row.link_auth = bool(flags & 0x40), bool(flags & 0x20)
        row.messaging = bool(flags & 0x10)
    level = request.data[2] & 0x0F
    if level not in (*range(1, 6), 15):
        raise Refusal(Completion.INVALID_FIELD)
    row.privilege = Privilege(level)
    return b""


def _user_name(request: Request) -> bytes:
    row = _user(request, 0)
    return row.name.ljust(NAME_SIZE, b"\0")


def _set_user_name(request: Request) -> bytes:
    row = _user(request, 0)
    if row.user_id == 1:
        raise Refusal(Completion.INVALID_FIELD)
    row.name = request.data[1 : 1 + NAME_SIZE].rstrip(b"\0")
    return b""


def _set_password(request: Request) -> bytes:
    row, operation = _user(request, 0), request.data[1] & 3
    given = request.data[2:]
    if operation in (_DISABLE, _ENABLE):
        row.enabled = operation == _ENABLE
        return b""
    size = PASSWORD_SIZE if request.data[0] & 0x80 else 16
    if len(given) != size:
        raise Refusal(Completion.LENGTH_INVALID)
    password = given.rstrip(b"\0")
    if operation == _SET:
        row.password = password
    elif len(row.password) > size:
        raise Refusal(PASSWORD_SIZE_WRONG)
    elif row.password != password:
        raise Refusal(PASSWORD_WRONG)
    return b""


def _security_keys(request: Request) -> bytes:
    """Set K_g; reading it is refused, as it always is on a locked key."""
    request.channel()
    operation, key_id = request.data[1] & 3, request.data[2]
    if operation != 1 or key_id != KG_SELECTOR or len(request.data) != 23:
        raise Refusal(Completion.INVALID_FIELD)
    request.bmc.kg = request.data[3:].rstrip(b"\0")
    return b"\x02"


def _global_enables(request: Request) -> bytes:  # noqa: ARG001  # event log on, always
    return b"\x08"


def _accepted(request: Request) -> bytes:  # noqa: ARG001  # nothing to do
    return b""


def _watchdog_reset(request: Request) -> bytes:
    if not request.bmc.watchdog.start():
        raise Refusal(NOT_INITIALISED)
    return b""


def _watchdog_set(request: Request) -> bytes:
    request.bmc.watchdog.set(request.data[:6])
    return b""


def _watchdog_get(request: Request) -> bytes:
    watchdog = request.bmc.watchdog
    use, action, pretimeout, _clear, low, high = watchdog.settings or bytes(6)
    running = _RUNNING if watchdog.running else 0
    left = int(watchdog.left_s / TICK_S).to_bytes(2, "little")
    return bytes((use & ~_RUNNING | running, action, pretimeout, watchdog.expired, low, high)) + left


COMMANDS = (
    Command(NetFn.APP, 0x22, Privilege.OPERATOR, 0, _watchdog_reset),
    Command(NetFn.APP, 0x24, Privilege.OPERATOR, 6, _watchdog_set),
    Command(NetFn.APP, 0x25, Privilege.USER, 0, _watchdog_get),
    Command(NetFn.APP, 0x2E, Privilege.ADMINISTRATOR, 1, _accepted),
    Command(NetFn.APP, 0x2F, Privilege.USER, 0, _global_enables),
    Command(NetFn.APP, 0x40, Privilege.ADMINISTRATOR, 3, _set_channel_access),
    Command(NetFn.APP, 0x41, Privilege.USER, 2, _channel_access),
    Command(NetFn.APP, 0x42, Privilege.USER, 1, _channel_info),
    Command(NetFn.APP, 0x43, Privilege.ADMINISTRATOR, 3, _set_user_access),
    Command(NetFn.APP, 0x44, Privilege.OPERATOR, 2, _user_access),
    Command(NetFn.APP, 0x45, Privilege.ADMINISTRATOR, 2, _set_user_name),
    Command(NetFn.APP, 0x46, Privilege.OPERATOR, 1, _user_name),
    Command(NetFn.APP, 0x47, Privilege.ADMINISTRATOR, 2, _set_password),
    Command(NetFn.APP, 0x56, Privilege.ADMINISTRATOR, 3, _security_keys),
    Command(NetFn.TRANSPORT, 0x01, Privilege.ADMINISTRATOR, 3, _set_lan),
    Command(NetFn.TRANSPORT, 0x02, Privilege.OPERATOR, 4, _get_lan),
)
