"""Chassis commands (IPMI 2.0 §28)."""

from __future__ import annotations

import struct

from lab.bmc.bmc import Identify
from lab.bmc.commands.table import Command, Request
from lab.bmc.ipmi.message import BMC_ADDRESS, Completion, NetFn, Refusal
from lab.bmc.power import NEEDS_POWER, Action
from lab.bmc.spec import Privilege

DEFAULT_IDENTIFY_S = 15
PARAMETER_VERSION = 0x01
_LAST_ON_BY_COMMAND = 0x10
_IDENTIFY_SUPPORTED = 0x40
_POLICIES = 3  # stay off, restore, always on; 3 changes nothing


def _capabilities(request: Request) -> bytes:  # noqa: ARG001  # the same for every request
    return bytes((0, BMC_ADDRESS, BMC_ADDRESS, BMC_ADDRESS, BMC_ADDRESS, BMC_ADDRESS))


def _status(request: Request) -> bytes:
    power = request.bmc.power
    state = power.policy << 5 | (0x10 if power.failed else 0) | power.on
    last = _LAST_ON_BY_COMMAND if power.on_by_command else 0
    lights = {Identify.OFF: 0, Identify.TIMED: 0x10, Identify.ON: 0x20}[request.bmc.identify]
    return bytes((state, last, _IDENTIFY_SUPPORTED | lights, 0))


def _control(request: Request) -> bytes:
    try:
        action = Action(request.data[0] & 0x0F)
    except ValueError as exc:
        raise Refusal(Completion.INVALID_FIELD) from exc
    if action in NEEDS_POWER and not request.bmc.power.on:
        raise Refusal(Completion.NOT_IN_THIS_STATE)
    request.bmc.power.request(action)
    return b""


def _identify(request: Request) -> bytes:
    seconds = float(request.data[0]) if request.data else DEFAULT_IDENTIFY_S
    if len(request.data) > 1 and request.data[1] & 1:
        seconds = float("inf")
    request.bmc.light_up(seconds)
    return b""


def _restore_policy(request: Request) -> bytes:
    wanted = request.data[0] & 7
    if wanted > _POLICIES:
        raise Refusal(Completion.INVALID_FIELD)
    if wanted < _POLICIES:
        request.bmc.power.policy = wanted
    return b"\x07"  # all three are supported


def _restart_cause(request: Request) -> bytes:
    return bytes((request.bmc.power.cause, 1))


def _set_boot_option(request: Request) -> bytes:
    selector, data = request.data[0], request.data[1:]
    request.bmc.boot.write(selector & 0x7F, data, invalid=bool(selector & 0x80))
    return b""


def _get_boot_option(request: Request) -> bytes:
    number = request.data[0] & 0x7F
    invalid, data = request.bmc.boot.read(number)
    return bytes((PARAMETER_VERSION, number | (0x80 if invalid else 0))) + data


def _power_on_hours(request: Request) -> bytes:
    return struct.pack("<BI", 60, int(request.bmc.uptime_s // 3600))


def _accepted(request: Request) -> bytes:  # noqa: ARG001  # nothing to do for these
    return b""


COMMANDS = (
    Command(NetFn.CHASSIS, 0x00, Privilege.USER, 0, _capabilities),
    Command(NetFn.CHASSIS, 0x01, Privilege.USER, 0, _status),
    Command(NetFn.CHASSIS, 0x02, Privilege.OPERATOR, 1, _control),
    Command(NetFn.CHASSIS, 0x04, Privilege.OPERATOR, 0, _identify),
    Command(NetFn.CHASSIS, 0x06, Privilege.OPERATOR, 1, _restore_policy),
    Command(NetFn.CHASSIS, 0x07, Privilege.USER, 0, _restart_cause),
    Command(NetFn.CHASSIS, 0x08, Privilege.OPERATOR, 1, _set_boot_option),
    Command(NetFn.CHASSIS, 0x09, Privilege.OPERATOR, 3, _get_boot_option),
    Command(NetFn.CHASSIS, 0x0A, Privilege.ADMINISTRATOR, 1, _accepted),
    Command(NetFn.CHASSIS, 0x0B, Privilege.ADMINISTRATOR, 1, _accepted),
    Command(NetFn.CHASSIS, 0x0F, Privilege.USER, 0, _power_on_hours),
)
