"""Cipher suites and the keys of one session (IPMI 2.0 §13.28 to 13.33, table 22-20)."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

_BLOCK = 16


@dataclass(frozen=True, slots=True)
class CipherSuite:
    """One suite: algorithm numbers as they stand on the wire, and what they mean."""

    number: int
    authentication: int
    integrity: int
    confidentiality: int
    digest: str
    code_size: int  # bytes of RAKP4's check value and of the integrity code

    @property
    def record(self) -> bytes:
        """The suite as Get Channel Cipher Suites lists it."""
        tagged = (self.authentication, 0x40 | self.integrity, 0x80 | self.confidentiality)
        return bytes((0xC0, self.number, *tagged))


SUITES = {
    suite.number: suite
    for suite in (
        CipherSuite(1, 1, 0, 0, "sha1", 12),
        CipherSuite(2, 1, 1, 0, "sha1", 12),
        CipherSuite(3, 1, 1, 1, "sha1", 12),
        CipherSuite(15, 3, 0, 0, "sha256", 16),
        CipherSuite(16, 3, 4, 0, "sha256", 16),
        CipherSuite(17, 3, 4, 1, "sha256", 16),
    )
}


@dataclass(frozen=True, slots=True)
class Keys:
    """What both ends derived from the session integrity key.

    The two ciphers chain on from packet to packet, which saves making them anew: the first block
    of each, which the other end takes for the initialisation vector, makes up for what came before.
    """

    suite: CipherSuite
    sik: bytes
    k1: bytes
    encryptor: CipherContext
    decryptor: CipherContext

    @classmethod
    def derive(cls, suite: CipherSuite, sik: bytes) -> Keys:
        k2 = hmac.digest(sik, b"\x02" * 20, suite.digest)
        k1 = hmac.digest(sik, b"\x01" * 20, suite.digest)
        aes = algorithms.AES(k2[:_BLOCK])
        encryptor = Cipher(aes, modes.CBC(os.urandom(_BLOCK))).encryptor()
        return cls(suite, sik, k1, encryptor, Cipher(aes, modes.CBC(bytes(_BLOCK))).decryptor())

    def integrity_code(self, covered: bytes) -> bytes:
        return hmac.digest(self.k1, covered, self.suite.digest)[: self.suite.code_size]

    def encrypt(self, payload: bytes) -> bytes:
        """Return initialisation vector and AES-CBC-128 of the payload, padded with 1, 2, 3, …"""
        pad = -(len(payload) + 1) % _BLOCK
        plain = payload + bytes(range(1, pad + 1)) + bytes((pad,))
        return self.encryptor.update(os.urandom(_BLOCK) + plain)

    def decrypt(self, data: bytes) -> bytes | None:
        """Return the payload; None where length or padding cannot be right."""
        if len(data) < 2 * _BLOCK or len(data) % _BLOCK:
            return None
        plain = self.decryptor.update(data)[_BLOCK:]
        pad = plain[-1]
        body = plain[: -pad - 1]
        return body if pad < _BLOCK and plain[len(body) : -1] == bytes(range(1, pad + 1)) else None


def choose_suite(
    offered: tuple[int | None, int | None, int | None], enabled: tuple[int, ...]
) -> CipherSuite | None:
    """Return the strongest enabled suite that fits; None in an offer means any algorithm."""
    for number in sorted(enabled, reverse=True):
        suite = SUITES[number]
        wanted = (suite.authentication, suite.integrity, suite.confidentiality)
        if all(ask is None or ask == have for ask, have in zip(offered, wanted, strict=True)):
            return suite
    return None
