"""Lets many that ask for the same kind of work at once share one turn of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping


class Batch:
    """Names gather while a turn is under way; the next turn takes all of them.

    A name asked for during a turn is worked on again in the next: the turn may have looked at it
    before what was just changed. Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._problems: dict[str, str] = {}
        self._turn = asyncio.Lock()

    async def ask(
        self, names: Collection[str], work: Callable[[frozenset[str]], Awaitable[Mapping[str, str]]]
    ) -> dict[str, str]:
        """Have `work` done for `names`, perhaps with those of others; returns the problems by name."""
        self._waiting |= set(names)
        async with self._turn:
            ours = self._waiting & set(names)
            if ours:
                batch, self._waiting = frozenset(self._waiting), set()
                try:
                    problems = await work(batch)
                except BaseException:
                    # Whoever waits behind us takes their names along; ours end with us.
                    self._waiting |= batch - ours
                    raise
                self._problems = {
                    name: what for name, what in self._problems.items() if name not in batch
                } | dict(problems)
        return {name: self._problems[name] for name in names if name in self._problems}
