"""Serial over LAN on an open session: every byte once, acknowledged after it was kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from bmc.errors import Busy, CommandRefused, Occupied, Unsupported
from bmc.ipmi import commands
from bmc.ipmi.session import Session

KEEPALIVE_ANSWER_S = 3.0

_INSTANCE = b"\x01\x01"  # payload type SOL, first instance
_ENCRYPTED_AND_SIGNED = b"\xc0\x00\x00\x00"
_STEALS = 3  # the loser may take it back at once
_DEACTIVATED, _OVERRUN = 0x10, 0x08


class Sol:
    """A console. `sink` gets the bytes and must keep them; where it raises OSError nothing is
    acknowledged. `ended` is set when the BMC ends the console."""

    def __init__(self, session: Session, sink: Callable[[bytes], None]) -> None:
        self.ended = asyncio.Event()
        self.overruns = 0  # times the BMC said that it lost bytes of the node
        self.owner = b""  # what the BMC calls the owner while that is us
        self._session = session
        self._sink = sink
        self._newest = -1  # session sequence number; anything older is a stray copy
        self._number = self._taken = 0  # of the packet taken last: its number, bytes acknowledged
        self._tail = b""  # bytes by which a retransmission of that packet grew
        self._tail_kept = 0  # of those, bytes that the sink has already

    async def activate(self, *, steal: bool = False, own: bytes = b"") -> None:
        """Open the console. Takes it from another session only with `steal`, or where its owner
        is `own`: a dead session of ours. Raises Busy, Unsupported."""
        self._session.on_sol = self._received
        for attempt in range(_STEALS):
            try:
                await self._activate()
                break
            except Busy:
                ours = bool(own) and await self._asked_owner() == own
                if attempt == _STEALS - 1 or not (steal or ours):
                    raise
                await self.deactivate()
        self.owner = await self._asked_owner()

    async def _activate(self) -> None:
        try:
            await self._session.command(commands.ACTIVATE_PAYLOAD, _INSTANCE + _ENCRYPTED_AND_SIGNED)
        except CommandRefused as exc:
            node, host = self._session.node, self._session.host
            if exc.code in (0x80, 0x82):
                raise Busy(node, host, Occupied.CONSOLE) from exc
            if exc.code in (0x81, 0x83, 0x84):
                raise Unsupported(node, host, commands.ACTIVATE_PAYLOAD.what) from exc
            raise

    async def deactivate(self) -> None:
        with contextlib.suppress(CommandRefused):
            await self._session.command(commands.DEACTIVATE_PAYLOAD, _INSTANCE + bytes(4))

    async def still_ours(self) -> bool:
        """Keep the session alive and tell whether the BMC still sends the console to it."""
        self.keep_tail()
        return await self._asked_owner() == self.owner

    async def _asked_owner(self) -> bytes:
        try:
            answer = await self._session.command(commands.PAYLOAD_OWNER, _INSTANCE, KEEPALIVE_ANSWER_S)
        except (CommandRefused, Unsupported):
            return b""  # then only silence tells
        return answer[:4]

    def keep_tail(self) -> None:
        """Hand over bytes that only a grown retransmission has shown so far."""
        if len(self._tail) > self._tail_kept:
            self._sink(self._tail[self._tail_kept :])
            self._tail_kept = len(self._tail)

    def _received(self, sequence: int, payload: bytes) -> None:
        if len(payload) < 4 or sequence <= self._newest:
            return
        self._newest = sequence
        number, status = payload[0] & 0x0F, payload[3]
        self.overruns += bool(status & _OVERRUN)
        if number:
            try:
                self._take(number, payload[4:])
            except OSError:  # nothing kept, so nothing acknowledged; the sink's owner knows why
                return
            self._session.send_sol(bytes((0, number, self._taken, 0)))
        if status & _DEACTIVATED:
            self.ended.set()

    def _take(self, number: int, data: bytes) -> None:
        """Keep what is new.

        A retransmission may have grown, and the acknowledgement of the first try may still be on
        its way: a BMC that counts then sends the growth again, one that does not never will. So
        the growth is not acknowledged but remembered, and the next packet tells which BMC it is.
        """
        if number == self._number:
            self._tail = data[self._taken :] or self._tail
            return
        tail, kept, size = self._tail, self._tail_kept, len(data)
        if tail and (data.startswith(tail) or tail.startswith(data)):
            data, left = data[kept:], max(0, kept - size)
            self._tail, self._tail_kept = tail[size:] if left else b"", left
        elif tail:
            data = tail[kept:] + data
            self._tail, self._tail_kept = b"", 0
        if data:
            self._sink(data)
        self._number, self._taken = number, size
