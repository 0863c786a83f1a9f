"""RMCP, ASF and IPMI session wrappers, as datagrams (IPMI 2.0 §13.1 to 13.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

RMCP_VERSION = 0x06
NO_ACK = 0xFF  # RMCP sequence number of a message that wants no acknowledgement
CLASS_ASF = 0x06
CLASS_IPMI = 0x07
AUTH_NONE = 0x00
AUTH_RMCPP = 0x06
ASF_IANA = 4542
PRESENCE_PING = 0x80
PRESENCE_PONG = 0x40
PONG_SUPPORTS_IPMI = 0x81
MAX_DATAGRAM = 1024

_IPMI_HEADER = bytes((RMCP_VERSION, 0, NO_ACK, CLASS_IPMI))


class Payload(IntEnum):
    """RMCP+ payload types."""

    IPMI = 0x00
    SOL = 0x01
    OPEN_REQUEST = 0x10
    OPEN_RESPONSE = 0x11
    RAKP1 = 0x12
    RAKP2 = 0x13
    RAKP3 = 0x14
    RAKP4 = 0x15


@dataclass(frozen=True, slots=True)
class Ping:
    """An ASF presence ping. `acknowledge` is the RMCP acknowledgement it asks for, if any."""

    tag: int
    acknowledge: bytes | None


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """An IPMI 1.5 packet with authentication type none and no session."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Wrapped:
    """An RMCP+ packet. `raw` is the datagram, for the integrity check."""

    payload_type: int
    encrypted: bool
    authenticated: bool
    session_id: int
    sequence: int
    payload: bytes
    raw: bytes


def parse(datagram: bytes) -> Ping | Unwrapped | Wrapped | None:
    """Read a datagram; None for anything that a BMC drops without an answer."""
    if not 12 <= len(datagram) <= MAX_DATAGRAM or datagram[0] != RMCP_VERSION:
        return None
    if datagram[3] == CLASS_ASF:
        return _parse_asf(datagram)
    if datagram[3] != CLASS_IPMI:
        return None
    if datagram[4] == AUTH_NONE:
        return _parse_unwrapped(datagram)
    return _parse_wrapped(datagram) if datagram[4] == AUTH_RMCPP else None


def pong(tag: int) -> bytes:
    body = struct.pack(
        ">IBBBBIIBB6x", ASF_IANA, PRESENCE_PONG, tag, 0, 16, ASF_IANA, 0, PONG_SUPPORTS_IPMI, 0
    )
    return bytes((RMCP_VERSION, 0, NO_ACK, CLASS_ASF)) + body


def unwrapped(message: bytes) -> bytes:
    return _IPMI_HEADER + bytes(9) + bytes((len(message),)) + message


def wrap(payload_type: int, payload: bytes, *, session_id: int = 0, sequence: int = 0) -> bytes:
    """Return a datagram without integrity; `payload_type` carries the flag bits too."""
    return _IPMI_HEADER + session_part(payload_type, payload, session_id, sequence)


def session_part(payload_type: int, payload: bytes, session_id: int, sequence: int) -> bytes:
    """Return the RMCP+ session header and payload: what the integrity check covers first."""
    return struct.pack("<BBIIH", AUTH_RMCPP, payload_type, session_id, sequence, len(payload)) + payload


def with_trailer(part: bytes) -> bytes:
    """Pad `part` so that pad, pad length and next header end on a multiple of four (§13.28.4)."""
    pad = -(len(part) + 2) % 4
    return part + b"\xff" * pad + bytes((pad, CLASS_IPMI))


def ipmi_datagram(part: bytes) -> bytes:
    return _IPMI_HEADER + part


def _parse_asf(datagram: bytes) -> Ping | None:
    iana, kind, tag = struct.unpack_from(">IBB", datagram, 4)
    if iana != ASF_IANA or kind != PRESENCE_PING:
        return None
    sequence = datagram[2]
    wants_ack = sequence != NO_ACK
    return Ping(tag, bytes((RMCP_VERSION, 0, sequence, CLASS_ASF | 0x80)) if wants_ack else None)


def _parse_unwrapped(datagram: bytes) -> Unwrapped | None:
    if len(datagram) < 14:
        return None
    session_id, length = struct.unpack_from("<IB", datagram, 9)
    if session_id or len(datagram) < 14 + length:
        return None
    return Unwrapped(datagram[14 : 14 + length])


def _parse_wrapped(datagram: bytes) -> Wrapped | None:
    if len(datagram) < 16:
        return None
    flags, session_id, sequence, length = struct.unpack_from("<BIIH", datagram, 5)
    payload = datagram[16 : 16 + length]
    if len(payload) != length:
        return None
    return Wrapped(
        payload_type=flags & 0x3F,
        encrypted=bool(flags & 0x80),
        authenticated=bool(flags & 0x40),
        session_id=session_id,
        sequence=sequence,
        payload=payload,
        raw=datagram,
    )
