"""IPMI LAN messages (IPMI 2.0 §13.8) and completion codes (§5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

BMC_ADDRESS = 0x20


class NetFn(IntEnum):
    """Network functions of requests; an answer's is one higher."""

    CHASSIS = 0x00
    SENSOR = 0x04
    APP = 0x06
    STORAGE = 0x0A
    TRANSPORT = 0x0C
    GROUP = 0x2C


class Completion(IntEnum):
    """Completion codes; those from 0x80 on mean something else for each command."""

    OK = 0x00
    NODE_BUSY = 0xC0
    INVALID_COMMAND = 0xC1
    INVALID_FOR_LUN = 0xC2
    OUT_OF_SPACE = 0xC4
    RESERVATION_LOST = 0xC5
    LENGTH_INVALID = 0xC7
    FIELD_LENGTH_EXCEEDED = 0xC8
    OUT_OF_RANGE = 0xC9
    NOT_PRESENT = 0xCB
    INVALID_FIELD = 0xCC
    ILLEGAL_FOR_RECORD = 0xCD
    INSUFFICIENT_PRIVILEGE = 0xD4
    NOT_IN_THIS_STATE = 0xD5


class Refusal(Exception):
    """A command ends with a completion code other than 0."""

    def __init__(self, code: int) -> None:
        super().__init__(f"completion code 0x{code:02x}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """One request as it came in."""

    responder: int
    netfn: int
    lun: int
    requester: int
    sequence: int
    requester_lun: int
    command: int
    data: bytes

    def answer(self, body: bytes) -> bytes:
        """Return the answer's bytes; `body` begins with the completion code."""
        head = bytes((self.requester, (self.netfn | 1) << 2 | self.requester_lun))
        rest = bytes((self.responder, self.sequence << 2 | self.lun, self.command)) + body
        return head + bytes((checksum(head),)) + rest + bytes((checksum(rest),))


def parse_message(payload: bytes) -> Message | None:
    """Read a LAN message; None where it is short or a checksum is wrong."""
    if len(payload) < 7 or sum(payload[:3]) & 0xFF or sum(payload[3:]) & 0xFF:
        return None
    return Message(
        responder=payload[0],
        netfn=payload[1] >> 2,
        lun=payload[1] & 3,
        requester=payload[3],
        sequence=payload[4] >> 2,
        requester_lun=payload[4] & 3,
        command=payload[5],
        data=payload[6:-1],
    )


def checksum(data: bytes) -> int:
    """Return the byte that makes the sum of all 0 modulo 256."""
    return -sum(data) & 0xFF
