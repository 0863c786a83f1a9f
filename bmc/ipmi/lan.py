"""A BMC's network settings, its users, and its watchdog."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from bmc.errors import CommandRefused, Unsupported
from bmc.ipmi import commands
from bmc.ipmi.session import LEVELS, Session

_THIS_CHANNEL = 0x0E
_SOURCE, _ADDRESS, _MAC, _NETMASK, _GATEWAY, _VLAN = 4, 3, 5, 6, 12, 20
_IPV6_ENABLES, _IPV6_STATUS, _IPV6_STATIC, _IPV6_DYNAMIC = 51, 55, 56, 59
_ACTIVE, _MOST_ADDRESSES = 0, 8
_SOURCES = {1: "static", 2: "dhcp", 3: "bios", 4: "other"}
_PRIVILEGES = {level: str(name) for name, level in LEVELS.items()} | {1: "callback", 5: "oem", 15: "none"}
_WATCHDOG_ACTIONS = {0: "none", 1: "reset", 2: "off", 3: "cycle"}
_SET_PASSWORD, _TWENTY_BYTES = 0x02, 0x80


@dataclass(frozen=True, slots=True)
class LanSettings:
    """How the BMC is on its network. `vlan` is None where none is used; `ipv6` holds the active
    addresses with their prefixes."""

    address: str
    netmask: str
    gateway: str
    mac: str
    source: str
    vlan: int | None
    ipv6: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class User:
    """One of the BMC's accounts."""

    id: int
    name: str
    privilege: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Watchdog:
    """The timer that acts on the node unless it is reset in time."""

    running: bool
    action: str
    seconds_left: float


async def lan_settings(session: Session) -> LanSettings:
    """Read the settings of the channel that we came in by."""

    async def read(parameter: int, size: int) -> bytes:
        return await _parameter(session, parameter, size)

    vlan = int.from_bytes(await read(_VLAN, 2), "little")
    return LanSettings(
        address=str(ipaddress.IPv4Address(await read(_ADDRESS, 4))),
        netmask=str(ipaddress.IPv4Address(await read(_NETMASK, 4))),
        gateway=str(ipaddress.IPv4Address(await read(_GATEWAY, 4))),
        mac=(await read(_MAC, 6)).hex(":"),
        source=_SOURCES.get((await read(_SOURCE, 1))[0] & 0x0F, "unknown"),
        vlan=vlan & 0x0FFF if vlan & 0x8000 else None,
        ipv6=await _ipv6_addresses(session),
    )


async def _parameter(session: Session, parameter: int, size: int, selector: int = 0) -> bytes:
    answer = await session.command(commands.GET_LAN, bytes((_THIS_CHANNEL, parameter, selector, 0)))
    return answer[1 : 1 + size].ljust(size, b"\x00")


async def _ipv6_addresses(session: Session) -> tuple[str, ...]:
    """Return the active addresses, set and given; none where the BMC knows IPv4 alone."""
    found = []
    try:
        if not (await _parameter(session, _IPV6_ENABLES, 1))[0]:
            return ()
        most = await _parameter(session, _IPV6_STATUS, 2)
        for parameter, count in ((_IPV6_STATIC, most[0]), (_IPV6_DYNAMIC, most[1])):
            for selector in range(min(count, _MOST_ADDRESSES)):
                row = await _parameter(session, parameter, 20, selector)
                if row[19] == _ACTIVE and any(row[2:18]):
                    found.append(f"{ipaddress.IPv6Address(row[2:18])}/{row[18]}")
    except (CommandRefused, Unsupported):
        pass  # what was read so far is right; most BMCs that know IPv4 alone refuse the first
    return tuple(found)


async def users(session: Session) -> tuple[User, ...]:
    """Return the accounts that have a name."""
    first = await session.command(commands.GET_USER_ACCESS, bytes((_THIS_CHANNEL, 1)))
    found = []
    for number in range(1, (first[0] & 0x3F) + 1):
        try:
            name = await session.command(commands.GET_USER_NAME, bytes((number,)))
            access = await session.command(commands.GET_USER_ACCESS, bytes((_THIS_CHANNEL, number)))
        except (CommandRefused, Unsupported):
            continue  # an empty slot
        text = name[:16].rstrip(b"\x00").decode("utf-8", "replace")
        if text:
            privilege = _PRIVILEGES.get(access[3] & 0x0F, "unknown")
            found.append(User(number, text, privilege, enabled=access[1] >> 6 != 0b10))
    return tuple(found)


async def set_password(session: Session, user_id: int, password: str) -> None:
    """Change a password. Raises ValueError for more than 20 bytes, which BMCs would cut."""
    secret = password.encode()
    if len(secret) > 20:
        raise ValueError("a BMC's password has at most 20 bytes")
    data = bytes((user_id | _TWENTY_BYTES, _SET_PASSWORD)) + secret.ljust(20, b"\x00")
    await session.command(commands.SET_USER_PASSWORD, data)


async def watchdog(session: Session) -> Watchdog:
    answer = await session.command(commands.GET_WATCHDOG)
    left = int.from_bytes(answer[6:8], "little") / 10
    return Watchdog(bool(answer[0] & 0x40), _WATCHDOG_ACTIONS.get(answer[1] & 0x07, "unknown"), left)


async def stop_watchdog(session: Session) -> None:
    """Stop the timer: one left running by an operating system cuts a node that is being imaged."""
    answer = await session.command(commands.GET_WATCHDOG)
    await session.command(commands.SET_WATCHDOG, bytes((answer[0] & 0x07, 0, 0, answer[3], 0, 0)))
