"""Waiting for many parts of runs at once: one question a round tells which of them have ended, and how."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

_MANY = 128  # parts; with more of them a look costs more, and there are fewer
_SLOWER = 1.1  # from a tenth of a second to two in about thirty looks


class FinishLine(Generic[T]):
    """Those who wait for a part share a look a round; a look for each of them would cost most of a core.

    `ended` is called in a thread, and returns which of the given ids have ended, each with how.
    What ends in this process is told by `ends`; the looks find what ended in others, was cancelled,
    or broke. They come quickly at first, for a process that goes on where another one was killed:
    there, most of what is waited for has ended before.
    """

    def __init__(
        self,
        ended: Callable[[Collection[str]], Mapping[str, T]],
        *,
        first_s: float = 0.1,
        round_s: float = 2.0,
    ) -> None:
        self._ended = ended
        self._round_s = round_s
        self._pause_s = min(first_s, round_s)
        self._waiting: dict[str, asyncio.Future[T]] = {}
        self._looking: asyncio.Task[None] | None = None

    def expect(self, part: str) -> None:
        """Have `part` watched from now on; `passed` is going to be asked for it."""
        if part not in self._waiting:
            self._waiting[part] = asyncio.get_running_loop().create_future()
        if self._looking is None:
            # Not in the asker's context: the engine would take what is asked there for its workflow's.
            self._looking = asyncio.create_task(self._look(), context=contextvars.Context())

    async def passed(self, part: str) -> T:
        """Return how `part` ended, once it has. Raises what looking raised."""
        self.expect(part)
        answer = self._waiting[part]
        try:
            # Whoever stops waiting must not take the answer from the others.
            return await asyncio.shield(answer)
        finally:
            if answer.done() and self._waiting.get(part) is answer:
                del self._waiting[part]

    def ends(self, part: str, how: T) -> None:
        """Tell those who wait how `part` ends, which is in this process and now."""
        answer = self._waiting.get(part)
        if answer is not None and not answer.done():
            answer.set_result(how)

    async def _look(self) -> None:
        try:
            while asked := tuple(part for part, answer in self._waiting.items() if not answer.done()):
                for part, how in (await asyncio.to_thread(self._ended, asked)).items():
                    self.ends(part, how)
                await asyncio.sleep(self._pause_s * max(1.0, len(asked) / _MANY))
                self._pause_s = min(self._round_s, self._pause_s * _SLOWER)
        except Exception as error:  # noqa: BLE001  handed to everybody who waits, who know what to do
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(error)
                    answer.exception()  # somebody may have stopped waiting; no mistake
        finally:
            self._looking = None
