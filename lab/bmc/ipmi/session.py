"""Sessions of one BMC: states, sequence windows, sealing, limit and expiry (IPMI 2.0 §6.12)."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from lab.bmc.ipmi.cipher import CipherSuite, Keys
from lab.bmc.ipmi.packet import Payload, Wrapped, ipmi_datagram, session_part, with_trailer
from lab.bmc.spec import Privilege
from lab.bmc.users import Account

Address = tuple[str, int]
Transmit = Callable[[bytes, Address], None]

WINDOW_AHEAD = 16
WINDOW_BEHIND = 15
HANDSHAKE_TIMEOUT_S = 5.0
_ENCRYPTED = 0x80
_AUTHENTICATED = 0x40


class State(Enum):
    """How far a session has come."""

    OPENED = 1  # open session answered
    CHALLENGED = 2  # RAKP 2 sent
    ACTIVE = 3


@dataclass(slots=True)
class Window:
    """The sliding window of inbound sequence numbers; number 0 is never valid in a session."""

    highest: int = 0
    seen: int = 0  # bit n: highest - n has arrived

    def admits(self, sequence: int) -> bool:
        """Record `sequence`; false for a repeated one and for one outside the window."""
        ahead = (sequence - self.highest) & 0xFFFFFFFF
        if sequence == 0:
            return False
        if 0 < ahead <= WINDOW_AHEAD:
            self.seen = (self.seen << ahead | 1) & ((1 << WINDOW_BEHIND + 1) - 1)
            self.highest = sequence
            return True
        behind = (self.highest - sequence) & 0xFFFFFFFF
        if behind > WINDOW_BEHIND or self.seen >> behind & 1:
            return False
        self.seen |= 1 << behind
        return True


@dataclass(slots=True)
class Session:
    """One session. `console_id` is the remote console's id, `number` ours."""

    handle: int
    number: int
    console_id: int
    suite: CipherSuite
    max_privilege: int  # asked for in Open Session; 0 asks for the highest
    address: Address
    transmit: Transmit
    last_seen: float
    state: State = State.OPENED
    role: int = 0  # the whole byte of RAKP 1, with the lookup bit
    account: Account | None = None
    name: bytes = b""
    console_random: bytes = b""
    bmc_random: bytes = b""
    keys: Keys | None = None
    privilege: Privilege = Privilege.USER
    commands: int = 0
    cached: tuple[bytes, bytes] | None = None  # the last request and its answer
    sol_encrypted: bool = True  # as asked for when SOL was activated
    _sent: int = 0
    _with_code: Window = field(default_factory=Window)
    _without_code: Window = field(default_factory=Window)

    @property
    def privilege_limit(self) -> int:
        """The highest level that Set Session Privilege may reach."""
        limit = self.account.privilege if self.account else Privilege.CALLBACK
        asked = [level for level in (self.role & 0x0F, self.max_privilege) if level]
        return min(limit, *asked)

    def unseal(self, packet: Wrapped) -> bytes | None:
        """Return the payload of a packet of this session; None where the BMC drops it."""
        if self.keys is None or self.state is not State.ACTIVE:
            return None
        if not self._authentic(packet):
            return None
        window = self._with_code if packet.authenticated else self._without_code
        if not window.admits(packet.sequence):
            return None
        if packet.encrypted != self._encrypts(packet.payload_type):
            return None
        return self.keys.decrypt(packet.payload) if packet.encrypted else packet.payload

    def send(self, payload_type: int, payload: bytes) -> None:
        """Seal a payload as the suite demands and send it to where the session last came from."""
        if self.keys is None:
            return
        self._sent += 1
        flags = payload_type
        if self._encrypts(payload_type):
            flags |= _ENCRYPTED
            payload = self.keys.encrypt(payload)
        if not self.suite.integrity:
            self.transmit(
                ipmi_datagram(session_part(flags, payload, self.console_id, self._sent)), self.address
            )
            return
        part = session_part(flags | _AUTHENTICATED, payload, self.console_id, self._sent)
        covered = with_trailer(part)
        self.transmit(ipmi_datagram(covered + self.keys.integrity_code(covered)), self.address)

    def _encrypts(self, payload_type: int) -> bool:
        return bool(self.suite.confidentiality) and (payload_type != Payload.SOL or self.sol_encrypted)

    def _authentic(self, packet: Wrapped) -> bool:
        if self.keys is None or packet.authenticated != bool(self.suite.integrity):
            return False
        if not packet.authenticated:
            return True
        size = self.suite.code_size
        return hmac.compare_digest(self.keys.integrity_code(packet.raw[4:-size]), packet.raw[-size:])


class SessionTable:
    """The BMC's session slots. `now` is a monotonic clock in seconds."""

    def __init__(self, limit: int, timeout_s: float, now: Callable[[], float]) -> None:
        self.limit = limit
        self.opened = 0  # sessions that became active
        self.closed = 0  # ended by Close Session
        self.expired = 0  # ended by silence
        self._watchers: list[Callable[[Session], None]] = []
        self._timeout_s = timeout_s
        self._now = now
        self._by_number: dict[int, Session] = {}
        self._next_handle = 0

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._by_number.values()))

    def __len__(self) -> int:
        return len(self._by_number)

    @property
    def active(self) -> list[Session]:
        self.expire()
        return [session for session in self if session.state is State.ACTIVE]

    def get(self, number: int) -> Session | None:
        self.expire()
        return self._by_number.get(number)

    def watch_ends(self, watcher: Callable[[Session], None]) -> None:
        """Have `watcher` called with each session that ends, however it ends."""
        self._watchers.append(watcher)

    def touch(self, session: Session) -> None:
        session.last_seen = self._now()

    def open(
        self, console_id: int, suite: CipherSuite, privilege: int, address: Address, transmit: Transmit
    ) -> Session | None:
        """Take a slot, the same for a request that is repeated; None where all are in use."""
        self.expire()
        for session in self:
            repeated = session.state is State.OPENED and session.console_id == console_id
            if repeated and session.address == address and session.suite == suite:
                self.touch(session)
                return session
        if len(self._by_number) >= self.limit:
            return None
        number = 0
        while number == 0 or number in self._by_number:
            number = secrets.randbits(32)
        self._next_handle = self._next_handle % 255 + 1
        session = Session(
            self._next_handle, number, console_id, suite, privilege, address, transmit, self._now()
        )
        self._by_number[number] = session
        return session

    def activate(self, session: Session) -> None:
        session.state = State.ACTIVE
        session.privilege = min(Privilege.USER, Privilege(session.privilege_limit))
        self.opened += 1
        self.touch(session)

    def close(self, session: Session) -> None:
        """End a session that its console closed."""
        self.closed += 1
        self._end(session)

    def abandon(self, session: Session) -> None:
        """End a session whose login failed."""
        self._end(session)

    def clear(self) -> None:
        for session in self:
            self._end(session)

    def expire(self) -> None:
        """End the sessions that have been silent for too long."""
        now = self._now()
        for session in self:
            active = session.state is State.ACTIVE
            if now - session.last_seen > (self._timeout_s if active else HANDSHAKE_TIMEOUT_S):
                self.expired += active
                self._end(session)

    def _end(self, session: Session) -> None:
        if self._by_number.pop(session.number, None) is not None:
            for watcher in self._watchers:
                watcher(session)
