"""LAN configuration parameters (IPMI 2.0 §23.2)."""

from __future__ import annotations

from collections.abc import Sequence

from lab.bmc.ipmi.message import Completion, Refusal

NOT_SUPPORTED = 0x80
READ_ONLY = 0x82
STATIC = 0x01
IP, SOURCE, MAC, MASK, GATEWAY = 3, 4, 5, 6, 12
_READ_ONLY = frozenset({1, 17, 22, 23})


class LanConfig:
    """The parameters as bytes; setting the address is remembered, and moves nothing."""

    def __init__(self, host: str, port: int, mac: bytes, suites: Sequence[int]) -> None:
        numbers = sorted(suites)
        address = bytes(int(part) for part in host.split("."))
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
            GATEWAY: address[:3] + b"\xfe",
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
        }

    def get(self, number: int) -> bytes:
        value = self._values.get(number)
        if value is None:
            raise Refusal(NOT_SUPPORTED)
        return value

    def set(self, number: int, value: bytes) -> None:
        if number in _READ_ONLY:
            raise Refusal(READ_ONLY)
        old = self.get(number)
        if len(value) < len(old):
            raise Refusal(Completion.LENGTH_INVALID)
        self._values[number] = value[: len(old)]


def _levels(count: int) -> bytes:
    """Return the highest privilege of each suite listed: administrator, in four bits each."""
    nibbles = [0x04] * count + [0] * (16 - count)
    return bytes((0, *(low | high << 4 for low, high in zip(nibbles[::2], nibbles[1::2], strict=True))))
