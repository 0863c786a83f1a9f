"""The endpoint that everything on one event loop shares."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from bmc.ipmi.endpoint import Endpoint


@dataclass(slots=True)
class _Lease:
    endpoint: Endpoint = field(default_factory=Endpoint)
    users: int = 0


_leases: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lease] = WeakKeyDictionary()


@asynccontextmanager
async def shared_endpoint(own: Endpoint | None = None) -> AsyncIterator[Endpoint]:
    """Yield `own`, else the running loop's endpoint, which closes when its last user leaves."""
    if own is not None:
        yield own
        return
    loop = asyncio.get_running_loop()
    lease = _leases.setdefault(loop, _Lease())
    lease.users += 1
    try:
        yield lease.endpoint
    finally:
        lease.users -= 1
        if lease.users == 0:
            del _leases[loop]
            await lease.endpoint.aclose()
