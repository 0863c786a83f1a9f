"""Opens the right driver for a BMC and always logs out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bmc.capability import Bmc, BmcTarget
from bmc.ipmi.driver import Ipmi
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import Session
from bmc.ipmi.sharing import shared_endpoint


@asynccontextmanager
async def connect(target: BmcTarget, *, endpoint: Endpoint | None = None) -> AsyncIterator[Bmc]:
    """Log in to `target`, yield its driver, log out whatever happens.

    Raises the leaves of `bmc.errors`; a dead BMC is Unreachable in under 5 s.
    """
    async with shared_endpoint(endpoint) as shared:
        session = Session(shared, target)
        await session.open()
        try:
            yield Ipmi(session, shared)
        finally:
            await session.close()
