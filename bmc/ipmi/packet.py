"""RMCP+ on the wire: bytes in, bytes out, no state and no I/O (IPMI 2.0, chapter 13).

What comes from a BMC is never trusted: a packet that does not parse is `None`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

RMCP_IPMI = b"\x06\x00\xff\x07"
IPMI_PAYLOAD, SOL_PAYLOAD = 0x00, 0x01
OPEN_REQUEST, OPEN_ANSWER = 0x10, 0x11
RAKP1, RAKP2, RAKP3, RAKP4 = 0x12, 0x13, 0x14, 0x15
NAME_ONLY_LOOKUP = 0x10  # look users up by name alone, not by name and privilege

_HEADER = 16  # RMCP, authentication type, payload type, session, sequence, length
_TRAILER = b"\xff\xff\x02\x07"  # the padding to whole words that whole blocks of AES always need
_SESSION_HEAD = struct.Struct("<BB4sIH")
_PADS = [bytes(range(1, n + 1)) + bytes([n]) for n in range(16)]


@dataclass(frozen=True, slots=True)
class Suite:
    """A cipher suite: its number, its three algorithm numbers, and what they mean here."""

    number: int
    authentication: int
    integrity: int
    confidentiality: int
    digest: str
    tag_length: int  # bytes of the integrity check that are sent


SUITES = {
    3: Suite(3, 1, 1, 1, "sha1", 12),
    17: Suite(17, 3, 4, 1, "sha256", 16),
}


def request(netfn: int, command: int, sequence: int, data: bytes, lun: int = 0) -> bytes:
    """Return an IPMI request from software (0x81) to the BMC (0x20)."""
    to, seat = netfn << 2 | lun, sequence << 2
    left = 0x81 + seat + command + sum(data)
    return bytes((0x20, to, -(0x20 + to) & 0xFF, 0x81, seat, command, *data, -left & 0xFF))


def sessionless(message: bytes) -> bytes:
    """Wrap `message` as IPMI 1.5 without a session: every BMC answers that."""
    return b"%b%b%c%b" % (RMCP_IPMI, bytes(9), len(message), message)


def setup(payload_type: int, body: bytes) -> bytes:
    """Wrap a payload of the handshake."""
    return b"%b\x06%c%b%b%b" % (RMCP_IPMI, payload_type, bytes(8), len(body).to_bytes(2, "little"), body)


def open_request(console_id: bytes, suite: Suite) -> bytes:
    """Ask for a session with one suite, without the tag and the privilege (0: the highest)."""
    proposals = b"".join(
        b"%c\x00\x00\x08%c\x00\x00\x00" % (kind, algorithm)
        for kind, algorithm in enumerate((suite.authentication, suite.integrity, suite.confidentiality))
    )
    return console_id + proposals


def setup_body(datagram: bytes) -> bytes | None:
    """Return the payload of a handshake packet."""
    length = int.from_bytes(datagram[14:16], "little")
    body = datagram[_HEADER : _HEADER + length]
    return body if len(body) == length and length >= 8 else None


def sessionless_body(datagram: bytes) -> bytes | None:
    """Return the message in an IPMI 1.5 packet without authentication."""
    if len(datagram) < 14 or datagram[4] != 0:
        return None
    body = datagram[14 : 14 + datagram[13]]
    return body if len(body) == datagram[13] else None


class Seal:
    """The keys of one session: seals what we send, opens what the BMC sends.

    Contexts live as long as the session. A random block goes through the cipher first: what
    comes out is the unpredictable initial vector of the rest, as chaining has it.
    """

    def __init__(self, suite: Suite, session_key: bytes, bmc_id: bytes) -> None:
        self._tag_length = suite.tag_length
        key = hmac.digest(session_key, b"\x01" * 20, suite.digest).ljust(64, b"\x00")
        self._inner = hashlib.new(suite.digest, bytes(byte ^ 0x36 for byte in key))
        self._outer = hashlib.new(suite.digest, bytes(byte ^ 0x5C for byte in key))
        aes = AES(hmac.digest(session_key, b"\x02" * 20, suite.digest)[:16])
        self._encryptor = Cipher(aes, CBC(os.urandom(16))).encryptor()
        self._decryptor = Cipher(aes, CBC(bytes(16))).decryptor()
        self._bmc_id = bmc_id
        self._sequence = 0

    def _tag(self, signed: bytes) -> bytes:
        """Return the HMAC of `signed`; with the key's part done once it takes half the time."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(signed)
        outer.update(inner.digest())
        return outer.digest()[: self._tag_length]

    def seal(self, payload_type: int, payload: bytes) -> bytes:
        """Encrypt and sign `payload` under the next sequence number."""
        self._sequence = self._sequence % 0xFFFFFFFF + 1
        secret = self._encryptor.update(os.urandom(16) + payload + _PADS[-(len(payload) + 1) % 16])
        head = _SESSION_HEAD.pack(6, 0xC0 | payload_type, self._bmc_id, self._sequence, len(secret))
        signed = head + secret + _TRAILER
        return RMCP_IPMI + signed + self._tag(signed)

    def open(self, datagram: bytes) -> bytes | None:
        """Return the payload of a packet that is ours and whole, else None."""
        tag = self._tag_length
        if len(datagram) < _HEADER + tag or not datagram[5] & 0x40:
            return None
        if not hmac.compare_digest(self._tag(datagram[4:-tag]), datagram[-tag:]):
            return None
        length = int.from_bytes(datagram[14:16], "little")
        payload = datagram[_HEADER : _HEADER + length]
        if len(payload) != length or not datagram[5] & 0x80:
            return payload if len(payload) == length else None
        if length < 32 or length % 16:
            return None
        clear = self._decryptor.update(payload)
        padding = clear[-1] + 1
        return clear[16:-padding] if padding <= 16 else None


@dataclass(frozen=True, slots=True)
class Handshake:
    """What both sides of one RAKP exchange know; every proof and key follows from it."""

    suite: Suite
    password: bytes
    kg: bytes  # the BMC's own key; the password where it has none
    user: bytes  # role, length of the name, name
    console_id: bytes
    bmc_id: bytes
    console_random: bytes
    bmc_random: bytes
    guid: bytes

    def _mac(self, key: bytes, *parts: bytes) -> bytes:
        return hmac.digest(key, b"".join(parts), self.suite.digest)

    def bmc_proof_holds(self, proof: bytes) -> bool:
        """Tell whether the BMC that sent RAKP2 knows our password."""
        said = (self.console_id, self.bmc_id, self.console_random, self.bmc_random, self.guid, self.user)
        return hmac.compare_digest(self._mac(self.password, *said), proof)

    def own_proof(self) -> bytes:
        """Return what RAKP3 must carry."""
        return self._mac(self.password, self.bmc_random, self.console_id, self.user)

    def session_key(self) -> bytes:
        return self._mac(self.kg, self.console_random, self.bmc_random, self.user)

    def final_check_holds(self, session_key: bytes, check: bytes) -> bool:
        """Tell whether RAKP4 shows that the BMC derived the same session key."""
        mine = self._mac(session_key, self.console_random, self.bmc_id, self.guid)
        return hmac.compare_digest(mine[: self.suite.tag_length], check)
