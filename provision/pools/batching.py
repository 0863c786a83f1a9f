"""Lets many that ask for the same kind of work at once share one turn of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

# A turn takes longer with more nodes, and more nodes ask: this keeps all turns to a tenth of the time.
_REST = 10.0
_LONGEST_REST_S = 5.0


@dataclass(slots=True)
class Batch:
    """Names gather while a turn is under way and while it rests; the next turn takes all of them.

    A name asked for during a turn is worked on again in the next: the turn may have looked at it
    before what was just changed. Belongs to one event loop.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _waiting: set[str] = field(default_factory=set)
    _problems: dict[str, str] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _rested: float = 0.0  # when the next turn may begin

    async def ask(
        self, names: Collection[str], work: Callable[[frozenset[str]], Awaitable[Mapping[str, str]]]
    ) -> dict[str, str]:
        """Have `work` done for `names`, perhaps with those of others; returns the problems by name."""
        self._waiting |= set(names)
        async with self._turn:
            if self._waiting & set(names):
                await self.sleep(max(0.0, self._rested - self.clock()))
                await self._work(frozenset(names), work)
        return {name: self._problems[name] for name in names if name in self._problems}

    async def _work(
        self, ours: frozenset[str], work: Callable[[frozenset[str]], Awaitable[Mapping[str, str]]]
    ) -> None:
        batch, self._waiting = frozenset(self._waiting), set()
        begun = self.clock()
        try:
            problems = await work(batch)
        except BaseException:
            # Whoever waits behind us takes their names along; ours end with us.
            self._waiting |= batch - ours
            raise
        finally:
            ended = self.clock()
            self._rested = ended + min(_LONGEST_REST_S, (ended - begun) * _REST)
        kept = {name: what for name, what in self._problems.items() if name not in batch}
        self._problems = kept | dict(problems)
