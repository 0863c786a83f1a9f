"""Serial over LAN, the BMC's side (IPMI 2.0 §15)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from lab.bmc.faults import Fault, Faults
from lab.bmc.ipmi.message import Refusal
from lab.bmc.ipmi.packet import Payload
from lab.bmc.ipmi.session import Session
from lab.bmc.spec import Privilege
from lab.chassis import Chassis, Interruptible

TAIL_BYTES = 4000  # a screen of 80 by 25 and more
MAX_DATA = 200  # characters in one packet
PROMPT_S = 0.005
ALREADY_ACTIVE = 0x80
ALREADY_INACTIVE = 0x80
DISABLED = 0x81

_NACK = 0x40
_BREAK, _PAUSE, _FLUSH_OUTBOUND = 0x10, 0x08, 0x01  # from the console
_UNAVAILABLE, _DEACTIVATED, _OVERRUN = 0x20, 0x10, 0x08  # to the console


@dataclass(slots=True)
class SolSettings:
    """SOL configuration parameters, in the units of the wire."""

    enabled: bool = True
    privilege: Privilege = Privilege.OPERATOR
    accumulate_5ms: int = 20
    threshold: int = MAX_DATA
    retries: int = 7
    retry_10ms: int = 10


@dataclass(slots=True)
class _Outbound:
    """The packet that waits for its acknowledgement."""

    sequence: int
    data: bytes
    sent: int = 0


@dataclass(slots=True)
class _Link:
    """One activation: sequence numbers of both directions."""

    session: Session
    last_sequence: int = 0  # ours
    outbound: _Outbound | None = None
    heard_sequence: int = 0  # the console's last packet and how much of it was taken
    heard_count: int = 0
    paused: bool = False


class SolPort:
    """The machine's first serial port: a ring of text, and at most one console that reads it."""

    def __init__(self, chassis: Chassis, faults: Faults, ring_bytes: int) -> None:
        self.settings = SolSettings()
        self._tail = bytearray()
        self.dropped = 0  # bytes that no console got: ring full, retries used up, BMC in reset
        self._chassis = chassis
        self._faults = faults
        self._limit = ring_bytes
        self._ring = bytearray()
        self._link: _Link | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = 0.0
        self._overrun = False
        self._held = False  # nothing goes out before the timer, however much waits
        self._deaf = False
        chassis.attach_serial(self.receive)

    @property
    def tail(self) -> bytes:
        """The newest text, whether a console read it or not."""
        return bytes(self._tail[-TAIL_BYTES:])

    @property
    def owner(self) -> Session | None:
        return self._link.session if self._link else None

    def receive(self, data: bytes) -> None:
        """Take bytes from the machine."""
        if self._deaf:
            self.dropped += len(data)
            return
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        self._ring += data
        excess = len(self._ring) - self._limit
        if excess > 0:
            del self._ring[:excess]
            self.dropped += excess
            self._overrun = True
        self._pump()

    def activate(self, session: Session, *, encrypted: bool) -> None:
        if not self.settings.enabled:
            raise Refusal(DISABLED)
        if self._link is not None:
            raise Refusal(ALREADY_ACTIVE)
        session.sol_encrypted = encrypted
        self._link = _Link(session)
        # The answer to Activate Payload goes first: text follows it.
        self._held = True
        self._wait(PROMPT_S)

    def deactivate(self, by: Session) -> None:
        """End the activation; a console that did not ask for it is told."""
        if self._link is None:
            raise Refusal(ALREADY_INACTIVE)
        loser = self._link.session
        self._detach()
        if loser is not by:
            loser.send(Payload.SOL, bytes((0, 0, 0, _DEACTIVATED)))

    def session_ended(self, session: Session) -> None:
        if self.owner is session:
            self._detach()

    def reset(self, *, keep: bool) -> None:
        """Forget everything, as a BMC that restarts does, and hear nothing until `wake`."""
        self._detach()
        if not keep:
            self.dropped += len(self._ring)
            self._ring.clear()
            self._deaf = True

    def wake(self) -> None:
        self._deaf = False

    def packet(self, session: Session, payload: bytes) -> None:
        """Take a SOL packet from a session."""
        if len(payload) < 4:
            return
        link = self._link
        if link is None or link.session is not session:
            session.send(Payload.SOL, bytes((0, payload[0] & 0x0F, 0, _NACK | _DEACTIVATED)))
            return
        self._operate(link, payload[3])
        if payload[1] & 0x0F:
            self._acknowledged(link, payload[1] & 0x0F, payload[2], nack=bool(payload[3] & _NACK))
        if payload[0] & 0x0F:
            self._hear(link, payload[0] & 0x0F, payload[4:])
        self._pump()

    def _operate(self, link: _Link, operation: int) -> None:
        link.paused = bool(operation & _PAUSE)
        if operation & _FLUSH_OUTBOUND:
            self._ring.clear()
        if operation & _BREAK and isinstance(self._chassis, Interruptible):
            self._chassis.send_break()

    def _hear(self, link: _Link, sequence: int, data: bytes) -> None:
        """Type what is new of a console's packet; a retransmission may have grown."""
        if not self._chassis.powered:
            link.session.send(Payload.SOL, bytes((0, sequence, 0, _NACK | _UNAVAILABLE)))
            return
        new = data[link.heard_count :] if sequence == link.heard_sequence else data
        taken = max(len(data), link.heard_count) if sequence == link.heard_sequence else len(data)
        link.heard_sequence, link.heard_count = sequence, taken
        if new:
            self._chassis.write_serial(new)
        link.session.send(Payload.SOL, bytes((0, sequence, len(data), 0)))

    def _acknowledged(self, link: _Link, sequence: int, count: int, *, nack: bool) -> None:
        """Drop what the console took; what it did not take goes out again under a new number."""
        outbound = link.outbound
        if outbound is None or outbound.sequence != sequence:
            return
        rest = outbound.data[count:]
        link.outbound = None
        self._cancel_timer()
        if rest:
            self._ring[:0] = rest
        if nack or (rest and count == 0):
            self._held = True
            self._wait(self.settings.retry_10ms * 0.01)

    def _pump(self) -> None:
        """Send if enough waits, else make sure that a timer will."""
        link = self._link
        if link is None or link.outbound is not None or link.paused or not self._ring:
            return
        if self._faults.active(Fault.SOL_DEAD):
            return
        if len(self._ring) >= self.settings.threshold and not self._held:
            self._send_next(link)
        elif self._timer is None:
            # Text after a pause goes out at once, so that typing echoes; a stream goes out in lots.
            lot = self._sent_at + self.settings.accumulate_5ms * 0.005
            self._wait(max(PROMPT_S, lot - asyncio.get_running_loop().time()))

    def _wait(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._held = False
        link = self._link
        if link is None or self._faults.active(Fault.SOL_DEAD):
            return
        if link.outbound is not None:
            self._retry(link, link.outbound)
        elif self._ring and not link.paused:
            self._send_next(link)

    def _send_next(self, link: _Link) -> None:
        data = bytes(self._ring[:MAX_DATA])
        del self._ring[: len(data)]
        link.last_sequence = link.last_sequence % 15 + 1
        link.outbound = _Outbound(link.last_sequence, data)
        self._transmit(link, link.outbound)

    def _retry(self, link: _Link, outbound: _Outbound) -> None:
        if outbound.sent > self.settings.retries:
            self.dropped += len(outbound.data)
            self._overrun = True
            link.outbound = None
            self._pump()
            return
        # A retransmission carries what has come since: the same start, grown.
        room = MAX_DATA - len(outbound.data)
        outbound.data += bytes(self._ring[:room])
        del self._ring[:room]
        self._transmit(link, outbound)

    def _transmit(self, link: _Link, outbound: _Outbound) -> None:
        outbound.sent += 1
        self._sent_at = asyncio.get_running_loop().time()
        status = _OVERRUN if self._overrun else 0
        self._overrun = False
        link.session.send(Payload.SOL, bytes((outbound.sequence, 0, 0, status)) + outbound.data)
        self._wait(self.settings.retry_10ms * 0.01)

    def _detach(self) -> None:
        """Go back to filling the ring; what was not acknowledged stays for the next console."""
        self._cancel_timer()
        if self._link is not None and self._link.outbound is not None:
            self._ring[:0] = self._link.outbound.data
        self._link = None

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
