"""One UDP socket for every BMC that a loop speaks to, and what is shared between sessions."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import os
import socket
from collections.abc import Coroutine
from typing import TYPE_CHECKING, cast

from bmc.ipmi import packet
from bmc.ipmi.measure import Address, Counts, RoundTrip

if TYPE_CHECKING:
    from bmc.ipmi.session import Session

_RECEIVE_BUFFER = 8 << 20
_LARGEST = 2048  # bytes; BMCs send up to a few hundred
_AT_ONCE = 512  # packets, before others have their turn
_CALM = 100  # sessions up to which every packet is taken when it comes: fast consoles need that
_FEW, _PAUSE_S = 8, 0.001  # packets that are fewer than a waking is worth; how long to let more come


class Endpoint:
    """Sends for all sessions and hands each packet to the session whose id it carries."""

    def __init__(self, counts: Counts | None = None) -> None:
        self.counts = counts or Counts()
        self.sdrs: dict[bytes, tuple[bytes, ...]] = {}  # one SDR for all BMCs of a kind
        self._trips: dict[Address, RoundTrip] = {}
        self._sessions: dict[bytes, Session] = {}
        self._asking: dict[tuple[Address, int], Session] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._sequence = itertools.cycle(range(1, 64))
        self._leaving: set[asyncio.Task[None]] = set()

    def open_for(self, family: int) -> None:
        """Bind the socket of an address family, unless it is bound."""
        if family in self._sockets:
            return
        sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        sock.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))  # noqa: S104  answers come to any
        self._sockets[family] = sock
        self._listen(sock)

    async def resolve(self, host: str, port: int) -> Address:
        """Return the socket address of `host`. Raises OSError or UnicodeError for no address."""
        try:
            family, address = socket.AF_INET, cast(Address, (str(ipaddress.IPv4Address(host)), port))
        except ValueError:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, address = found[0][0], cast(Address, found[0][4])
        self.open_for(family)
        return address

    def send(self, datagram: bytes, address: Address) -> None:
        sock = self._sockets.get(socket.AF_INET if len(address) == 2 else socket.AF_INET6)
        if sock is None:
            return
        try:
            sock.sendto(datagram, address)
        except OSError:  # no way there, or the socket is full: as lost as on the wire, and sent again
            self.counts.dropped += 1

    def trip(self, address: Address) -> RoundTrip:
        if address not in self._trips:
            self._trips[address] = RoundTrip()
        return self._trips[address]

    def enter(self, session: Session) -> bytes:
        """Return a new session id of our side under which `session` gets its packets."""
        while (console_id := os.urandom(4)) in self._sessions or console_id == bytes(4):
            pass
        self._sessions[console_id] = session
        return console_id

    def leave(self, console_id: bytes) -> None:
        self._sessions.pop(console_id, None)

    def ask(self, session: Session) -> int:
        """Reserve a sequence number for a question outside any session."""
        for _ in range(64):
            number = next(self._sequence)
            if (session.address, number) not in self._asking:
                break
        self._asking[session.address, number] = session
        return number

    def asked(self, session: Session, number: int) -> None:
        self._asking.pop((session.address, number), None)

    def finish_later(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run `work` to its end even where its caller is cancelled; `aclose` waits for it."""
        task = asyncio.get_running_loop().create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def aclose(self) -> None:
        try:
            if self._leaving:
                await asyncio.wait(self._leaving)
        finally:
            for sock in self._sockets.values():
                asyncio.get_running_loop().remove_reader(sock)
                sock.close()
            self._sockets.clear()

    def _listen(self, sock: socket.socket) -> None:
        if sock in self._sockets.values():
            asyncio.get_running_loop().add_reader(sock, self._readable, sock)

    def _readable(self, sock: socket.socket) -> None:
        """Take what has come. With many sessions, look again only after a moment: waking for each
        packet by itself costs more than the packet."""
        taken = 0
        try:
            while taken < _AT_ONCE:
                self.received(*sock.recvfrom(_LARGEST))
                taken += 1
        except BlockingIOError:
            pass
        except OSError:  # of some packet that we sent; the deadline can tell of which
            return
        if taken < _FEW and len(self._sessions) > _CALM:
            loop = asyncio.get_running_loop()
            loop.remove_reader(sock)
            loop.call_later(_PAUSE_S, self._listen, sock)

    def received(self, data: bytes, addr: Address) -> None:
        session: Session | None = None
        if len(data) >= 20 and data[:4] == packet.RMCP_IPMI:
            if data[4] == 6:
                kind = data[5] & 0x3F
                if kind in (packet.IPMI_PAYLOAD, packet.SOL_PAYLOAD):
                    session = self._sessions.get(data[6:10])
                    if session is not None and session.address == addr:
                        session.payload_received(kind, data)
                        return
                elif (body := packet.setup_body(data)) is not None:
                    session = self._sessions.get(body[4:8])
                    if session is not None and session.address == addr:
                        session.handshake_received(kind, body)
                        return
            elif (message := packet.sessionless_body(data)) is not None and len(message) >= 8:
                session = self._asking.get((addr, message[4] >> 2))
                if session is not None:
                    session.message_received(message)
                    return
        self.counts.dropped += 1
