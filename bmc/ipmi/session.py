"""One authenticated session with one BMC: log in, command, log out."""

from __future__ import annotations

import asyncio
import os
import random
import struct
from collections.abc import Callable
from typing import NamedTuple

from bmc import errors
from bmc.capability import BmcTarget, Privilege
from bmc.errors import BadAnswer, Occupied, Rejection, Unreachable, WrongSuite
from bmc.ipmi import packet
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.measure import Address

DEAD_AFTER_S = 4.5  # a BMC that answers nothing for this long is not there
STAGE_S = 2.5  # one exchange of the handshake, before starting over
COMMAND_S = 10.0
CLOSE_S = 2.0
LEVELS = {Privilege.USER: 2, Privilege.OPERATOR: 3, Privilege.ADMINISTRATOR: 4}

_ATTEMPTS = 4
_GROWTH = 1.6
# After a retransmission the two sides may disagree on which try is current; then these say
# nothing about the login, and the handshake starts over.
_STALE = {0x01, 0x02, 0x08, 0x0F}
_TRY_LATER = {0xC0, 0xC3, 0xCF, 0xD0, 0xD1, 0xD2}  # busy, timed out, seen twice, starting


class Command(NamedTuple):
    """An IPMI command: where it goes, what to call it, and how many bytes it must answer."""

    netfn: int
    number: int
    what: str
    at_least: int = 0


AUTHENTICATION_CAPABILITIES = Command(0x06, 0x38, "authentication capabilities", 4)
SET_PRIVILEGE = Command(0x06, 0x3B, "the session's privilege")
CLOSE_SESSION = Command(0x06, 0x3C, "closing the session")


class _StartOver(Exception):
    """The handshake got out of step with the BMC."""


class Session:
    """A session; `open` before use, `close` always. One command is outstanding at a time."""

    def __init__(self, endpoint: Endpoint, target: BmcTarget) -> None:
        self.target, self.node, self.host = target, target.name, target.host
        self.address: Address = (target.host, target.port)
        self.bmc_id = self.guid = b""
        self.heard_at = 0.0  # loop time of the last packet that was ours
        self.on_sol: Callable[[int, bytes], None] | None = None
        self._endpoint = endpoint
        self._console_id = self._latest = b""
        self._seal: packet.Seal | None = None
        self._answer: asyncio.Future[bytes | None] | None = None
        self._wanted: tuple[int, ...] = ()  # what the answer waited for must carry
        self._trip = endpoint.trip(self.address)
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = self._give_up_at = 0.0
        self._lock = asyncio.Lock()
        self._sequence = self._nonsense = 0
        self._retransmitted = self._dead = False

    async def probe(self, deadline_s: float = DEAD_AFTER_S) -> None:
        """Ask outside any session whether an IPMI 2.0 BMC is there; measures the way to it.

        Raises Unreachable after `deadline_s`, Unsupported where only IPMI 1.5 is spoken.
        """
        try:
            self.address = await self._endpoint.resolve(self.host, self.target.port)
        except (OSError, UnicodeError) as exc:
            raise Unreachable(self.node, self.host, 0.0, "the name does not resolve") from exc
        number = self._endpoint.ask(self)
        self._trip = self._endpoint.trip(self.address)
        netfn, command = AUTHENTICATION_CAPABILITIES[:2]
        data = bytes((0x8E, LEVELS[self.target.privilege]))
        question = packet.sessionless(packet.request(netfn, command, number, data))
        try:
            answer = await self._exchange(lambda: question, (netfn + 1, command, number), deadline_s)
        finally:
            self._endpoint.asked(self, number)
        if len(answer) >= 5 and answer[0] == 0 and answer[2] & 0x80 and not answer[4] & 0x02:
            raise errors.Unsupported(self.node, self.host, "IPMI 2.0 sessions")

    async def open(self, *, probed: bool = False) -> None:
        """Log in with the first cipher suite that the BMC takes, and raise the privilege."""
        credential = self.target.credential
        if len(credential.username.encode()) > 16:
            raise self._rejected(Rejection.USERNAME_TOO_LONG)
        if len(credential.password.encode()) > 20:
            raise self._rejected(Rejection.PASSWORD_TOO_LONG)
        if not probed:
            await self.probe()
        try:
            await self._open_with_any()
            await self.command(SET_PRIVILEGE, bytes((LEVELS[self.target.privilege],)))
        except BaseException as exc:
            self._endpoint.counts.failed += 1
            await self.close()
            if isinstance(exc, errors.CommandRefused):
                raise self._too_low(f"level {self.target.privilege}") from exc
            raise

    async def _open_with_any(self) -> None:
        answered = ""
        for number in self.target.suites:
            if number not in packet.SUITES:
                raise errors.Unsupported(self.node, self.host, f"cipher suite {number} (17 and 3 are spoken)")
            try:
                return await self._open_with(packet.SUITES[number])
            except WrongSuite as exc:
                answered = exc.answered or answered
        raise WrongSuite(self.node, self.host, self.target.suites, answered)

    async def _open_with(self, suite: packet.Suite) -> None:
        for attempt in range(_ATTEMPTS):
            self._retransmitted = False
            self._console_id = self._endpoint.enter(self)
            try:
                await self._handshake(suite, again=attempt > 0)
            except _StartOver:
                self._abandon()
                await asyncio.sleep(0.1 * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311  spreads load
            except BaseException:
                self._abandon()
                raise
            else:
                self._endpoint.counts.opened += 1
                return
        raise Unreachable(self.node, self.host, DEAD_AFTER_S, "no answer that fits the handshake")

    def _abandon(self) -> None:
        """Free the BMC's slot where keys exist already: the session may be up on its side."""
        if self._seal is not None:
            farewell = packet.request(CLOSE_SESSION.netfn, CLOSE_SESSION.number, 1, self.bmc_id)
            self._endpoint.send(self._seal.seal(packet.IPMI_PAYLOAD, farewell), self.address)
            self._seal = None
        self._endpoint.leave(self._console_id)

    async def _handshake(self, suite: packet.Suite, *, again: bool) -> None:
        self.bmc_id = await self._ask_for_session(suite)
        shake = await self._exchange_randoms(suite, again=again)
        session_key, proof = shake.session_key(), shake.own_proof()
        self._seal = packet.Seal(suite, session_key, self.bmc_id)  # with RAKP3 the BMC may be in session
        body = await self._stage(packet.RAKP3, packet.RAKP4, self.bmc_id + proof)
        if not shake.final_check_holds(session_key, body[8 : 8 + suite.tag_length]):
            raise self._disproved(Rejection.WRONG_KG)

    async def _ask_for_session(self, suite: packet.Suite) -> bytes:
        request = packet.open_request(self._console_id, suite)
        body = await self._stage(packet.OPEN_REQUEST, packet.OPEN_ANSWER, request)
        if len(body) < 36:
            raise BadAnswer(self.node, self.host, f"Open Session answered with {len(body)} bytes")
        chosen = (body[16], body[24], body[32])
        if chosen != (suite.authentication, suite.integrity, suite.confidentiality):
            names = "authentication {} integrity {} confidentiality {}".format(*chosen)
            raise WrongSuite(self.node, self.host, (suite.number,), names)
        return body[8:12]

    async def _exchange_randoms(self, suite: packet.Suite, *, again: bool) -> packet.Handshake:
        credential = self.target.credential
        username, password = credential.username.encode(), credential.password.encode()
        role = packet.NAME_ONLY_LOOKUP | LEVELS[self.target.privilege]
        mine = os.urandom(16)
        request = self.bmc_id + mine + struct.pack("<BHB", role, 0, len(username)) + username
        body = await self._stage(packet.RAKP1, packet.RAKP2, request)
        if again:  # the network may double packets: the last answer holds the number that counts
            await asyncio.sleep(2 * (self._trip.mean or 0.05))
            body = self._latest if self._latest[:2] == body[:2] else body
        theirs, self.guid, proof = body[8:24], body[24:40], body[40:]
        kg = credential.kg.encode() if credential.kg else password
        user = bytes((role, len(username))) + username
        sides = (self._console_id, self.bmc_id, mine, theirs, self.guid)
        shake = packet.Handshake(suite, password, kg, user, *sides)
        if not shake.bmc_proof_holds(proof):
            refusal = packet.setup(packet.RAKP3, b"\x00\x0f\x00\x00" + self.bmc_id)
            self._endpoint.send(refusal, self.address)  # lets the BMC free the slot at once
            raise self._disproved(Rejection.WRONG_PASSWORD)
        return shake

    async def _stage(self, ask: int, answer: int, body: bytes) -> bytes:
        """Exchange one pair of handshake packets, each try under a tag of its own."""
        tag = random.randrange(256)  # noqa: S311  tells tries apart, no secret

        def again() -> bytes:
            nonlocal tag
            tag = (tag + 1) % 256
            if ask == packet.RAKP1:  # the BMC draws a new random number for each try: only the newest counts
                self._wanted = (answer, tag)
            return packet.setup(ask, b"%c\x00\x00\x00%b" % (tag, body))

        try:
            patience = max(STAGE_S, 3 * self._trip.wait_s())
            received = await self._exchange(again, (answer,), patience)
        except Unreachable:
            raise _StartOver from None
        if received[1] == 0:
            return received
        # With RAKP2 the BMC has proved that it knows the password; so RAKP4 cannot mean a wrong one.
        if received[1] in _STALE and (self._retransmitted or (answer, received[1]) == (packet.RAKP4, 0x0F)):
            raise _StartOver
        raise self._refusal(received[1])

    def _refusal(self, status: int) -> errors.BmcError:
        match status:
            case 0x01 | 0x0B:
                return errors.Busy(self.node, self.host, Occupied.SESSIONS)
            case 0x04 | 0x05 | 0x06 | 0x07 | 0x10 | 0x11:
                return WrongSuite(self.node, self.host, self.target.suites)
            case 0x09 | 0x0A:
                return self._too_low(f"level {self.target.privilege}")
            case 0x0C | 0x0D:
                return self._rejected(Rejection.UNKNOWN_USER)
            case 0x0F:
                return self._rejected(Rejection.WRONG_PASSWORD)
        return BadAnswer(self.node, self.host, f"handshake status {status:#04x}")

    def _disproved(self, rejection: Rejection) -> Exception:
        return _StartOver() if self._retransmitted else self._rejected(rejection)

    def _rejected(self, rejection: Rejection) -> errors.AuthRejected:
        return errors.AuthRejected(self.node, self.host, self.target.credential.username, rejection)

    def _too_low(self, wanted: str) -> errors.PrivilegeTooLow:
        return errors.PrivilegeTooLow(self.node, self.host, self.target.credential.username, wanted)

    async def command(self, command: Command, data: bytes = b"", deadline_s: float = COMMAND_S) -> bytes:
        """Return the answer's data, without the completion code.

        Raises Unreachable after `deadline_s`, Unsupported, PrivilegeTooLow, Busy, CommandRefused.
        """
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + deadline_s, 0.1
        while True:
            await self._lock.acquire()
            try:
                answer = await self._once(command, data, end - loop.time())
            finally:
                self._lock.release()
            code = answer[0]
            if code == 0 and len(answer) > command.at_least:
                return answer[1:]
            if code not in _TRY_LATER:
                raise self._command_refused(command, answer)
            if loop.time() + pause > end:
                raise errors.Busy(self.node, self.host, Occupied.BMC)
            await asyncio.sleep(pause)
            pause *= 2

    async def _once(self, command: Command, data: bytes, deadline_s: float) -> bytes:
        seal = self._seal
        if seal is None:
            raise Unreachable(self.node, self.host, 0.0, "the session is closed")
        netfn, number, _, _ = command
        self._sequence = sequence = self._sequence % 63 + 1
        message = packet.request(netfn, number, sequence, data)
        try:
            return await self._exchange(
                lambda: seal.seal(packet.IPMI_PAYLOAD, message), (netfn + 1, number, sequence), deadline_s
            )
        except Unreachable:
            self._dead = True
            raise

    def _command_refused(self, command: Command, answer: bytes) -> errors.BmcError:
        match answer[0]:
            case 0x00:
                problem = f"{command.what}: {len(answer) - 1} bytes instead of {command.at_least}"
                return BadAnswer(self.node, self.host, problem)
            case 0xC1 | 0xC2:
                return errors.Unsupported(self.node, self.host, command.what)
            case 0xD4:
                return self._too_low(command.what)
        return errors.CommandRefused(self.node, self.host, command.what, answer[0])

    def send_sol(self, payload: bytes) -> None:
        """Send a SOL payload, once."""
        if self._seal is not None:
            self._endpoint.send(self._seal.seal(packet.SOL_PAYLOAD, payload), self.address)

    async def close(self) -> None:
        """Log out, also where the caller is being cancelled; never raises BmcError."""
        if self._seal is not None:
            await asyncio.shield(self._endpoint.finish_later(self._close()))

    async def _close(self) -> None:
        try:
            await self.command(CLOSE_SESSION, self.bmc_id, 0.5 if self._dead else CLOSE_S)
            self._endpoint.counts.closed += 1
        except errors.BmcError:
            self._endpoint.counts.lost += 1
        finally:
            self._seal = None
            self._endpoint.leave(self._console_id)
            if self._alarm is not None:
                self._alarm.cancel()

    async def _exchange(self, make: Callable[[], bytes], wanted: tuple[int, ...], deadline_s: float) -> bytes:
        """Send what `make` returns until what is `wanted` comes. Raises Unreachable, BadAnswer."""
        loop, trip, nonsense = asyncio.get_running_loop(), self._trip, self._nonsense
        wait, started = trip.wait_s(), loop.time()
        sent, end = started, started + deadline_s
        self._wanted = wanted
        try:
            while True:
                self._answer = loop.create_future()
                self._endpoint.send(make(), self.address)
                self._give_up_at = sent + wait if sent + wait < end else end
                if self._alarm is None or self._alarm_at > self._give_up_at:
                    self._ring(loop)
                answer = await self._answer
                if answer is not None:
                    if sent == started:  # after a retransmission nobody knows which try was answered
                        trip.measure(loop.time() - sent)
                    return answer
                sent = loop.time()
                if sent >= end:
                    break
                self._retransmitted = True
                self._endpoint.counts.retransmitted += 1
                wait = trip.backed_off = wait * _GROWTH * random.uniform(0.9, 1.1)  # noqa: S311  spreads load
        finally:
            self._answer = None
        if self._nonsense > nonsense:
            raise BadAnswer(self.node, self.host, f"{self._nonsense - nonsense} packets that do not parse")
        raise Unreachable(self.node, self.host, deadline_s)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the alarm. It is left standing when an answer comes: most exchanges then need none."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = self._give_up_at
        self._alarm = loop.call_at(self._alarm_at, self._rang, loop)

    def _rang(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = None
        if self._answer is None or self._answer.done():
            return
        if loop.time() < self._give_up_at:
            self._ring(loop)
        else:
            self._answer.set_result(None)

    def handshake_received(self, kind: int, body: bytes) -> None:
        self._latest = body
        if self._wanted in ((kind,), (kind, body[0])):
            self._answered(body)

    def payload_received(self, kind: int, datagram: bytes) -> None:
        payload = self._seal.open(datagram) if self._seal is not None else None
        if payload is None:
            self._nonsense += 1
            self._endpoint.counts.dropped += 1
            return
        self.heard_at = asyncio.get_running_loop().time()
        if kind == packet.IPMI_PAYLOAD:
            self.message_received(payload)
        elif self.on_sol is not None:
            self.on_sol(int.from_bytes(datagram[10:14], "little"), payload)

    def message_received(self, message: bytes) -> None:
        """Take an IPMI answer: network function, command, sequence; completion code and data.

        Checksums are not looked at: UDP's and the session's own are better, and some BMCs err here.
        """
        if len(message) < 8:
            self._nonsense += 1
        elif self._wanted == (message[1] >> 2, message[5], message[4] >> 2):
            self._answered(message[6:-1])

    def _answered(self, answer: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
