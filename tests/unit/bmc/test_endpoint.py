"""The socket that all sessions share: nothing is left lying, however many they are."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from bmc.capability import BmcTarget, Credential
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import Session

MANY = 120


class Counting(Endpoint):
    """Counts what comes in, whoever it is for."""

    came = 0

    def received(self, data: bytes, addr: tuple[str, int] | tuple[str, int, int, int]) -> None:
        self.came += 1
        super().received(data, addr)


@pytest.fixture
async def endpoint() -> AsyncIterator[Counting]:
    one = Counting()
    await one.resolve("127.0.0.1", 623)
    yield one
    await one.aclose()


def own_port(endpoint: Endpoint) -> int:
    return int(endpoint._sockets[socket.AF_INET].getsockname()[1])


def enter(endpoint: Endpoint, count: int) -> None:
    for number in range(count):
        endpoint.enter(Session(endpoint, BmcTarget(f"n{number}", "127.0.0.1", Credential("a", "b"))))


@pytest.mark.parametrize("sessions", [1, MANY])
async def test_every_packet_is_taken_with_few_sessions_and_with_many(
    endpoint: Counting, sessions: int
) -> None:
    enter(endpoint, sessions)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bmc:
        for wave in range(1, 4):  # the second and third come while the endpoint may be pausing
            for _ in range(30):
                bmc.sendto(b"anything", ("127.0.0.1", own_port(endpoint)))
            async with asyncio.timeout(5):
                while endpoint.came < 30 * wave:
                    await asyncio.sleep(0)
    assert endpoint.counts.dropped == 90


async def test_closing_in_a_pause_is_quiet(endpoint: Counting) -> None:
    said: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    enter(endpoint, MANY)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bmc:
        bmc.sendto(b"anything", ("127.0.0.1", own_port(endpoint)))
        async with asyncio.timeout(5):
            while not endpoint.came:
                await asyncio.sleep(0)
    await endpoint.aclose()
    await asyncio.sleep(0.01)  # longer than the pause
    assert said == []


async def test_a_packet_that_cannot_leave_is_counted_and_no_error(endpoint: Counting) -> None:
    endpoint.send(b"x", ("255.255.255.255", 623))  # the socket may not broadcast
    assert endpoint.counts.dropped == 1
