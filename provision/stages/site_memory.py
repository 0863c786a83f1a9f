"""The gate's memory as all nodes of a process share it: what concerns all of them is read once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from provision.access import Access
from provision.gate_memory import GateMemory
from provision.pools.batching import Batch


@dataclass
class SiteMemory:
    """Read anew after `fresh_s`: a bring-up of hundreds judges them by values that are as old at most."""

    fresh_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    _memory: GateMemory | None = None
    _read_at: float = 0.0
    _learning: Batch = field(default_factory=Batch)

    def now(self, access: Access) -> GateMemory:
        """Return the memory to judge a node with."""
        if self._memory is None or self.clock() - self._read_at > self.fresh_s:
            self._memory, self._read_at = GateMemory(access), self.clock()
        return self._memory

    async def learn(self, access: Access, node: str) -> None:
        """Have what `node` taught learned, together with what others did meanwhile."""

        async def work(_: frozenset[str]) -> Mapping[str, str]:
            await asyncio.to_thread(GateMemory(access).learn)
            return {}

        await self._learning.ask([node], work)
