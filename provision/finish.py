"""Waiting for many parts of runs at once: one question a round tells which of them have ended."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Collection

_MANY = 128  # parts; with more of them a look costs more, and there are fewer
_SLOWER = 1.1  # from a tenth of a second to two in about thirty looks
_RECORD_S = 0.1  # what the record of an end takes, mostly


class FinishLine:
    """Those who wait for a part share a look a round; a look for each of them would cost most of a core.

    `ended` is called in a thread, and returns which of the given ids have ended. What ends in this
    process is told by `ends`; the looks find what ended in others, was cancelled, or broke. They
    come quickly at first, for a process that goes on where another one was killed: there, most of
    what is waited for has ended before.
    """

    def __init__(
        self,
        ended: Callable[[Collection[str]], Collection[str]],
        *,
        first_s: float = 0.1,
        round_s: float = 2.0,
    ) -> None:
        self._ended = ended
        self._round_s = round_s
        self._pause_s = min(first_s, round_s)
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def expect(self, part: str) -> None:
        """Have `part` watched from now on; `passed` is going to be asked for it."""
        if part not in self._waiting:
            self._waiting[part] = asyncio.get_running_loop().create_future()
        if self._looking is None:
            # Not in the asker's context: the engine would take what is asked there for its workflow's.
            self._looking = asyncio.create_task(self._look(), context=contextvars.Context())

    async def passed(self, part: str) -> None:
        """Return once `part` has ended, however it ended. Raises what looking raised."""
        self.expect(part)
        answer = self._waiting[part]
        # Whoever stops waiting must not take the answer from the others.
        try:
            await asyncio.shield(answer)
        finally:
            if answer.done() and self._waiting.get(part) is answer:
                del self._waiting[part]

    def ends(self, part: str) -> None:
        """Tell those who wait that `part` ends here now; its record follows within a moment."""
        asyncio.get_running_loop().call_later(_RECORD_S, self._tell, part, None)

    async def _look(self) -> None:
        try:
            while asked := tuple(part for part, answer in self._waiting.items() if not answer.done()):
                for part in await asyncio.to_thread(self._ended, asked):
                    self._tell(part, None)
                await asyncio.sleep(self._pause_s * max(1.0, len(asked) / _MANY))
                self._pause_s = min(self._round_s, self._pause_s * _SLOWER)
        except Exception as error:  # noqa: BLE001  handed to everybody who waits, who know what to do
            for part in tuple(self._waiting):
                self._tell(part, error)
        finally:
            self._looking = None

    def _tell(self, part: str, error: Exception | None) -> None:
        answer = self._waiting.get(part)
        if answer is None or answer.done():
            return
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)
            answer.exception()  # somebody may have stopped waiting; that is not a mistake to be logged
