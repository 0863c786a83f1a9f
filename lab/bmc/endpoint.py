"""The UDP side of one BMC: datagrams in, answers out, faults of the wire in between."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

from lab.bmc.bmc import Bmc
from lab.bmc.commands import app, channel, chassis, event_log, inventory, payload, sensor
from lab.bmc.commands.table import CommandTable, Request
from lab.bmc.faults import Fault
from lab.bmc.ipmi import packet
from lab.bmc.ipmi.message import BMC_ADDRESS, Completion, Message, NetFn, parse_message
from lab.bmc.ipmi.session import Address, Session

RECEIVE_BUFFER = 1 << 18
TABLE = CommandTable(
    (
        *app.COMMANDS,
        *channel.COMMANDS,
        *chassis.COMMANDS,
        *event_log.COMMANDS,
        *inventory.COMMANDS,
        *payload.COMMANDS,
        *sensor.COMMANDS,
    )
)
_COLD_RESET, _WARM_RESET, _CLOSE_SESSION = 0x02, 0x03, 0x3C

_log = logging.getLogger(__name__)


class Endpoint(asyncio.DatagramProtocol):
    """Speaks for one BMC on its own socket."""

    def __init__(self, bmc: Bmc) -> None:
        self.bmc = bmc
        self._transport: asyncio.DatagramTransport | None = None
        self._lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.bmc.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.bmc.log.datagrams += 1
        faults = self.bmc.faults
        if self.bmc.down or faults.strikes(Fault.LOSS):
            return
        delay = self.bmc.spec.delay_s + faults.value(Fault.SLOW)
        for _ in range(2 if faults.strikes(Fault.DUPLICATES) else 1):
            if delay:
                asyncio.get_running_loop().call_later(delay, self._handle, data, addr)
            else:
                self._handle(data, addr)

    def error_received(self, exc: Exception) -> None:
        _log.debug("%s: the console's socket is gone: %s", self.bmc.name, exc)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the protocol's signature
        self._lost.set()

    async def close(self) -> None:
        """Return when the address is free again."""
        if self._transport is not None:
            self._transport.close()
            await self._lost.wait()

    def transmit(self, data: bytes, addr: Address) -> None:
        """Send one datagram through whatever is wrong with the wire."""
        faults = self.bmc.faults
        if self._transport is None or self._transport.is_closing() or self.bmc.down:
            return
        if faults.strikes(Fault.LOSS):
            return
        if faults.strikes(Fault.GARBAGE):
            data = faults.spoil(data)
        for _ in range(2 if faults.strikes(Fault.DUPLICATES) else 1):
            self._transport.sendto(data, addr)

    def _handle(self, data: bytes, addr: Address) -> None:
        if self.bmc.down:
            return
        match packet.parse(data):
            case packet.Ping(tag=tag, acknowledge=acknowledge):
                if acknowledge:
                    self.transmit(acknowledge, addr)
                self.transmit(packet.pong(tag), addr)
            case packet.Unwrapped(message=message):
                answer = self._sessionless(message)
                if answer is not None:
                    self.transmit(packet.unwrapped(answer), addr)
            case packet.Wrapped() as wrapped:
                self._wrapped(wrapped, addr)
            case None:
                return

    def _wrapped(self, wrapped: packet.Wrapped, addr: Address) -> None:
        if wrapped.payload_type in (packet.Payload.IPMI, packet.Payload.SOL):
            if wrapped.session_id:
                self._in_session(wrapped, addr)
                return
            answer = self._sessionless(wrapped.payload)
            if answer is not None:
                self.transmit(packet.wrap(packet.Payload.IPMI, answer), addr)
            return
        step = self.bmc.handshake.step(wrapped.payload_type, wrapped.payload, addr, self.transmit)
        if step is not None:
            self.transmit(packet.wrap(*step), addr)

    def _sessionless(self, payload: bytes) -> bytes | None:
        message = parse_message(payload)
        return message.answer(self._execute(message, None)) if message else None

    def _in_session(self, wrapped: packet.Wrapped, addr: Address) -> None:
        session = self.bmc.sessions.get(wrapped.session_id)
        body = session.unseal(wrapped) if session else None
        if session is None or body is None:
            return
        self.bmc.sessions.touch(session)
        session.address = addr
        session.commands += 1
        if wrapped.payload_type == packet.Payload.SOL:
            self.bmc.sol.packet(session, body)
            return
        message = parse_message(body)
        if message is not None:
            self._answer(session, message, body)

    def _answer(self, session: Session, message: Message, body: bytes) -> None:
        if session.cached is not None and session.cached[0] == body:
            session.send(packet.Payload.IPMI, session.cached[1])
            return
        answer = message.answer(self._execute(message, session))
        session.cached = body, answer
        session.send(packet.Payload.IPMI, answer)
        self._after(session, message, answer)

    def _after(self, session: Session, message: Message, answer: bytes) -> None:
        """Do what can only be done once the answer is out."""
        succeeded = answer[6] == Completion.OK
        resets_at = self.bmc.faults.value(Fault.RESET_IN_SESSION)
        if resets_at and session.commands >= resets_at:
            self.bmc.cold_reset()
        elif not succeeded or message.netfn != NetFn.APP:
            return
        elif message.command in (_COLD_RESET, _WARM_RESET):
            self.bmc.cold_reset()
        elif message.command == _CLOSE_SESSION:
            number = int.from_bytes(message.data[:4], "little")
            if number in (0, session.number):
                self.bmc.sessions.close(session)

    def _execute(self, message: Message, session: Session | None) -> bytes:
        user = session.name.decode(errors="replace") if session else ""
        self.bmc.log.add(message.netfn, message.command, message.data, user)
        if message.responder != BMC_ADDRESS or message.netfn & 1:
            return bytes((Completion.INVALID_COMMAND,))
        if message.lun:
            return bytes((Completion.INVALID_FOR_LUN,))
        return TABLE.execute(Request(self.bmc, message.netfn, message.command, message.data, session))
