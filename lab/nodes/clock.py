"""The lab's time server: tells nodes this machine's time over NTP (RFC 5905, server mode)."""

from __future__ import annotations

import asyncio
import struct
import time
from typing import cast

from lab.errors import NoService

_EPOCH = 2_208_988_800  # seconds from 1900, where NTP begins, to 1970
_PACKET = struct.Struct("!BBbbII4sQQQQ")
_CLIENT, _SERVER = 3, 4
_STRATUM = 2
_PRECISION = -20  # a microsecond
_SHORT_MILLISECOND = 66  # in units of 2^-16 s


class TimeServer(asyncio.DatagramProtocol):
    """Answers client requests; anything else is dropped."""

    def __init__(self) -> None:
        self._transport: asyncio.DatagramTransport | None = None

    async def start(self, host: str, port: int) -> None:
        """Begin to listen. Raises NoService where the address cannot be had."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(lambda: self, local_addr=(host, port))
        except OSError as exc:
            raise NoService(
                "time server", f"cannot listen on {host}:{port}/udp", follow=f"ss -lunp 'sport = :{port}'"
            ) from exc

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = answer_time(data, time.time())
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)


def answer_time(request: bytes, now: float) -> bytes | None:
    """Return the answer to one request that arrived at `now`, or None for what is no request."""
    if len(request) < _PACKET.size:
        return None
    first, _, poll, *_, transmitted = _PACKET.unpack(request[: _PACKET.size])
    version, mode = first >> 3 & 7, first & 7
    if mode != _CLIENT or not 1 <= version <= 4:
        return None
    stamp = round((now + _EPOCH) * 2**32)
    return _PACKET.pack(
        version << 3 | _SERVER,
        _STRATUM,
        poll,
        _PRECISION,
        _SHORT_MILLISECOND,
        _SHORT_MILLISECOND,
        b"LAB\0",
        stamp & ~0xFFFF_FFFF,
        transmitted,
        stamp,
        stamp,
    )
