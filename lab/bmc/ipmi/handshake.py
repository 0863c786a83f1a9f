"""Logging in: Open Session and RAKP messages 1 to 4 (IPMI 2.0 §13.17 to 13.24)."""

from __future__ import annotations

import hmac
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from lab.bmc.faults import Fault, Faults
from lab.bmc.ipmi.cipher import SUITES, CipherSuite, Keys, choose_suite
from lab.bmc.ipmi.packet import Payload
from lab.bmc.ipmi.session import Address, Session, SessionTable, State, Transmit
from lab.bmc.spec import Privilege
from lab.bmc.users import Account, UserTable

NAME_LIMIT = 16
Answer = tuple[Payload, bytes]


class Status(IntEnum):
    """RMCP+ and RAKP status codes (table 13-15)."""

    OK = 0x00
    INSUFFICIENT_RESOURCES = 0x01
    INVALID_SESSION_ID = 0x02
    INVALID_PAYLOAD_TYPE = 0x03
    INVALID_AUTHENTICATION = 0x04
    INVALID_INTEGRITY = 0x05
    NO_MATCHING_AUTHENTICATION = 0x06
    NO_MATCHING_INTEGRITY = 0x07
    INACTIVE_SESSION_ID = 0x08
    INVALID_ROLE = 0x09
    UNAUTHORIZED_ROLE = 0x0A
    INVALID_NAME_LENGTH = 0x0C
    UNAUTHORIZED_NAME = 0x0D
    INVALID_INTEGRITY_CHECK = 0x0F
    INVALID_CONFIDENTIALITY = 0x10
    NO_CIPHER_SUITE_MATCH = 0x11
    ILLEGAL_PARAMETER = 0x12


# The algorithm numbers that the specification defines: others are invalid, these may be unmatched.
_DEFINED = {0: range(4), 1: range(5), 2: range(4)}
_INVALID = (Status.INVALID_AUTHENTICATION, Status.INVALID_INTEGRITY, Status.INVALID_CONFIDENTIALITY)


class _Failed(Exception):
    """The handshake ends with a status code."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.name)
        self.status = status


@dataclass(frozen=True, slots=True)
class Handshake:
    """The login side of one BMC. `guid` is read at each step, as it stands."""

    sessions: SessionTable
    users: UserTable
    suites: tuple[int, ...]
    kg: Callable[[], bytes]
    guid: bytes
    faults: Faults

    def step(self, payload_type: int, payload: bytes, address: Address, transmit: Transmit) -> Answer | None:
        """Answer one handshake payload; None where it is too short to answer."""
        if payload_type == Payload.OPEN_REQUEST and len(payload) >= 8:
            return Payload.OPEN_RESPONSE, self._open(payload, address, transmit)
        if payload_type == Payload.RAKP1 and len(payload) >= 28:
            return Payload.RAKP2, self._rakp1(payload)
        if payload_type == Payload.RAKP3 and len(payload) >= 8:
            answer = self._rakp3(payload)
            return (Payload.RAKP4, answer) if answer else None
        return None

    def _open(self, payload: bytes, address: Address, transmit: Transmit) -> bytes:
        tag, privilege = payload[0], payload[1] & 0x0F
        console_id = payload[4:8]
        try:
            suite = self._agree(payload)
            session = self._take_slot(console_id, suite, privilege, address, transmit)
        except _Failed as failed:
            return bytes((tag, failed.status, 0, 0)) + console_id
        head = bytes((tag, Status.OK, privilege or Privilege.ADMINISTRATOR, 0)) + console_id
        chosen = (suite.authentication, suite.integrity, suite.confidentiality)
        algorithms = b"".join(bytes((kind, 0, 0, 8, number, 0, 0, 0)) for kind, number in enumerate(chosen))
        return head + struct.pack("<I", session.number) + algorithms

    def _take_slot(
        self, console_id: bytes, suite: CipherSuite, privilege: int, address: Address, transmit: Transmit
    ) -> Session:
        if privilege > Privilege.OEM:
            raise _Failed(Status.INVALID_ROLE)
        number = struct.unpack("<I", console_id)[0]
        full = self.faults.active(Fault.NO_SESSIONS)
        session = None if full else self.sessions.open(number, suite, privilege, address, transmit)
        if session is None:
            raise _Failed(Status.INSUFFICIENT_RESOURCES)
        return session

    def _agree(self, payload: bytes) -> CipherSuite:
        """Return the suite for the three algorithm offers."""
        if len(payload) < 32:
            raise _Failed(Status.ILLEGAL_PARAMETER)
        offered: list[int | None] = []
        for kind in range(3):
            record = payload[8 + 8 * kind : 16 + 8 * kind]
            if record[0] != kind:
                raise _Failed(Status.INVALID_PAYLOAD_TYPE)
            any_will_do = record[3] == 0
            if not any_will_do and record[4] not in _DEFINED[kind]:
                raise _Failed(_INVALID[kind])
            offered.append(None if any_will_do else record[4])
        suite = choose_suite((offered[0], offered[1], offered[2]), self.suites)
        if suite is None:
            raise _Failed(Status.NO_CIPHER_SUITE_MATCH)
        return suite

    def _rakp1(self, payload: bytes) -> bytes:
        tag, number = payload[0], struct.unpack_from("<I", payload, 4)[0]
        session = self.sessions.get(number)
        if session is None or session.state is State.ACTIVE:
            return bytes((tag, Status.INVALID_SESSION_ID, 0, 0)) + bytes(4)
        session.role = payload[24]
        try:
            session.name = _name(payload)
            account = self._account(session)
        except _Failed as failed:
            self.sessions.abandon(session)
            return bytes((tag, failed.status, 0, 0)) + _id(session.console_id)
        self.sessions.touch(session)
        session.account = account
        session.console_random = payload[8:24]
        # A repeated message 1 draws a new number: an answer to the first is void from here on.
        session.bmc_random = secrets.token_bytes(16)
        session.state = State.CHALLENGED
        covered = (
            _id(session.console_id)
            + _id(session.number)
            + session.console_random
            + session.bmc_random
            + self.guid
            + _role_and_name(session)
        )
        code = hmac.digest(self._password(account), covered, session.suite.digest)
        return bytes((tag, Status.OK, 0, 0)) + _id(session.console_id) + session.bmc_random + self.guid + code

    def _account(self, session: Session) -> Account:
        role = session.role & 0x0F
        if not Privilege.CALLBACK <= role <= Privilege.OEM:
            raise _Failed(Status.INVALID_ROLE)
        account = self.users.find(session.name)
        if account is None:
            raise _Failed(Status.UNAUTHORIZED_NAME)
        too_high = session.max_privilege and role > session.max_privilege
        if too_high or role > account.privilege or account.privilege == Privilege.NO_ACCESS:
            raise _Failed(Status.UNAUTHORIZED_ROLE)
        return account

    def _rakp3(self, payload: bytes) -> bytes | None:
        tag, number = payload[0], struct.unpack_from("<I", payload, 4)[0]
        session = self.sessions.get(number)
        if session is None or session.account is None or session.state is State.OPENED:
            return bytes((tag, Status.INVALID_SESSION_ID, 0, 0)) + bytes(4)
        if payload[1]:  # the console gave up: there is nobody to answer
            self.sessions.abandon(session)
            return None
        if session.state is State.ACTIVE and session.commands:
            return bytes((tag, Status.INVALID_SESSION_ID, 0, 0)) + _id(session.console_id)
        digest = session.suite.digest
        password = self._password(session.account)
        covered = session.bmc_random + _id(session.console_id) + _role_and_name(session)
        if not hmac.compare_digest(hmac.digest(password, covered, digest), payload[8:]):
            self.sessions.abandon(session)
            return bytes((tag, Status.INVALID_INTEGRITY_CHECK, 0, 0)) + _id(session.console_id)
        if session.state is State.CHALLENGED:
            seed = session.console_random + session.bmc_random + _role_and_name(session)
            session.keys = Keys.derive(session.suite, hmac.digest(self.kg() or password, seed, digest))
            self.sessions.activate(session)
        assert session.keys is not None
        proof = session.console_random + _id(session.number) + self.guid
        code = hmac.digest(session.keys.sik, proof, digest)[: session.suite.code_size]
        return bytes((tag, Status.OK, 0, 0)) + _id(session.console_id) + code

    def _password(self, account: Account) -> bytes:
        return b"not the one" if self.faults.active(Fault.WRONG_PASSWORD) else account.password


def check_suites(numbers: tuple[int, ...]) -> None:
    """Raise ValueError for a cipher suite that the emulator has not."""
    missing = [number for number in numbers if number not in SUITES]
    if missing or not numbers:
        raise ValueError(f"cipher suites {missing or 'none'}: choose from {sorted(SUITES)}")


def _name(payload: bytes) -> bytes:
    length = payload[27]
    if length > NAME_LIMIT or len(payload) < 28 + length:
        raise _Failed(Status.INVALID_NAME_LENGTH)
    return payload[28 : 28 + length]


def _id(number: int) -> bytes:
    return struct.pack("<I", number)


def _role_and_name(session: Session) -> bytes:
    return bytes((session.role, len(session.name))) + session.name
