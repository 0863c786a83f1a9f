from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import aiohttp
import pytest

from lab.maas import Delays, MaasConfig, MaasServer, StubPower, start_maas
from tests.contract.lab_maas.wire import Wire

QUICK = Delays(0.01, 0.02, 0.02, 0.03, 0.02, 0.02, 0.05, 0.02, 0.02)


@pytest.fixture
def power() -> StubPower:
    return StubPower()


Start = Callable[[MaasConfig], Awaitable[tuple[MaasServer, Wire]]]


@pytest.fixture
async def start(power: StubPower) -> AsyncIterator[Start]:
    """Start lab MAASes that are closed at the end of the test."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())

        async def begin(config: MaasConfig) -> tuple[MaasServer, Wire]:
            server = await start_maas(config, power)
            stack.push_async_callback(server.close)
            return server, Wire(session, server.url, config.users[0])

        yield begin


@pytest.fixture
async def maas(start: Start) -> tuple[MaasServer, Wire]:
    """A lab MAAS whose machines are real to it: they ask and report through the boot service."""
    return await start(MaasConfig(delays=QUICK))


@pytest.fixture
async def imaginary(start: Start) -> tuple[MaasServer, Wire]:
    """A lab MAAS whose machines do their part by themselves."""
    return await start(MaasConfig(delays=QUICK, simulate=True))
