"""LAN configuration parameters (IPMI 2.0 §23.2)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from lab.bmc.ipmi.message import Completion, Refusal

NOT_SUPPORTED = 0x80
READ_ONLY = 0x82
STATIC = 0x01
IP, SOURCE, MAC, MASK, GATEWAY = 3, 4, 5, 6, 12
IPV6_SUPPORT, IPV6_ENABLES, IPV6_STATUS, IPV6_STATIC, IPV6_DYNAMIC = 50, 51, 55, 56, 59
_READ_ONLY = frozenset({1, 17, 22, 23, IPV6_SUPPORT, IPV6_STATUS, IPV6_DYNAMIC})
_BOTH = 0x02  # IPv4 and IPv6 at once
_ENABLED, _SLAAC, _ACTIVE, _OFF = 0x80, 0x01, 0x00, 0x01


@dataclass(slots=True)
class Ipv6Address:
    """One address as parameters 56 and 59 show it."""

    address: bytes
    prefix: int
    source: int  # 0: static, 1: made from the router's prefix and the MAC

    def shown(self, selector: int) -> bytes:
        used = any(self.address)
        flags = _ENABLED | self.source if used else self.source
        return bytes((selector, flags, *self.address, self.prefix, _ACTIVE if used else _OFF))


class LanConfig:
    """The parameters as bytes; setting the address is remembered, and moves nothing."""

    def __init__(self, host: str, port: int, mac: bytes, suites: Sequence[int]) -> None:
        numbers = sorted(suites)
        own = ipaddress.ip_address(host)
        address = own.packed if own.version == 4 else bytes(4)
        self._ipv6 = {
            IPV6_STATIC: Ipv6Address(own.packed if own.version == 6 else bytes(16), 64, 0),
            IPV6_DYNAMIC: Ipv6Address(_link_local(mac), 64, _SLAAC),
        }
        self._values = {
            0: b"\x00",  # set complete
            1: b"\x00",  # no IPMI 1.5 authentication type
            2: bytes(5),
            IP: address,
            SOURCE: bytes((STATIC,)),
            MAC: mac,
            MASK: b"\xff\x00\x00\x00",
            7: b"\x40\x40\x10",
            8: port.to_bytes(2, "little"),
            10: b"\x02",  # ARP answers
            11: b"\x00",
            GATEWAY: address[:3] + b"\xfe" if own.version == 4 else bytes(4),
            13: bytes(6),
            14: bytes(4),
            15: bytes(6),
            16: b"public".ljust(18, b"\0"),
            17: b"\x00",  # no alert destinations
            20: bytes(2),  # no VLAN
            21: b"\x00",
            22: bytes((len(numbers),)),
            23: bytes((0, *numbers)).ljust(17, b"\0"),
            24: _levels(len(numbers)),
            IPV6_SUPPORT: b"\x03",
            IPV6_ENABLES: bytes((_BOTH,)),
            IPV6_STATUS: bytes((1, 1, 0x02)),  # one static, one dynamic address, no DHCPv6
            64: b"\x00",  # no routers: neither set nor looked for
        }

    def get(self, number: int, selector: int = 0) -> bytes:
        if number in self._ipv6:
            if selector:
                raise Refusal(Completion.OUT_OF_RANGE)
            return self._ipv6[number].shown(selector)
        value = self._values.get(number)
        if value is None:
            raise Refusal(NOT_SUPPORTED)
        return value

    def set(self, number: int, value: bytes) -> None:
        if number in _READ_ONLY:
            raise Refusal(READ_ONLY)
        if number == IPV6_STATIC:
            if len(value) < 19 or value[0]:
                raise Refusal(Completion.OUT_OF_RANGE)
            on = value[1] & _ENABLED
            self._ipv6[number] = Ipv6Address(value[2:18] if on else bytes(16), value[18], 0)
            return
        old = self.get(number)
        if len(value) < len(old):
            raise Refusal(Completion.LENGTH_INVALID)
        self._values[number] = value[: len(old)]


def _link_local(mac: bytes) -> bytes:
    """Return the address that every interface gives itself (RFC 4291, appendix A)."""
    return b"\xfe\x80" + bytes(6) + bytes((mac[0] ^ 0x02,)) + mac[1:3] + b"\xff\xfe" + mac[3:]


def _levels(count: int) -> bytes:
    """Return the highest privilege of each suite listed: administrator, in four bits each."""
    nibbles = [0x04] * count + [0] * (16 - count)
    return bytes((0, *(low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2], strict=True))))
