"""Reads machines for many who wait at once: those who ask within a moment share one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from provision.maas.client import MaasClient
from provision.maas.model import Machine


class MachineWatch:
    """Gathers questions about single machines for `window_s` seconds and asks MAAS once for all.

    Five hundred nodes that wait for MAAS would otherwise ask it five hundred times a round.
    """

    def __init__(
        self,
        maas: MaasClient,
        *,
        window_s: float = 0.25,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._maas = maas
        self._window_s = window_s
        self._sleep = sleep
        self._asked: dict[str, asyncio.Future[Machine | None]] = {}
        self._rounds: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.Future[Machine | None]] = set()

    async def machine(self, system_id: str) -> Machine | None:
        """Return the machine as MAAS sees it now, None where MAAS has none. Raises MaasError."""
        answer = self._asked.get(system_id)
        if answer is None:
            answer = asyncio.get_running_loop().create_future()
            if not self._asked:
                self._begin_round()
            self._asked[system_id] = answer
            self._open.add(answer)
            answer.add_done_callback(self._open.discard)
        # Whoever stops waiting must not take the answer from the others.
        return await asyncio.shield(answer)

    async def close(self) -> None:
        """Stop asking; whoever still waits is cancelled."""
        rounds = list(self._rounds)
        for task in rounds:
            task.cancel()
        await asyncio.gather(*rounds, return_exceptions=True)
        for answer in list(self._open):
            answer.cancel()

    def _begin_round(self) -> None:
        task = asyncio.create_task(self._ask())
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _ask(self) -> None:
        await self._sleep(self._window_s)
        asked, self._asked = self._asked, {}
        try:
            machines = {one.system_id: one for one in await self._maas.machines(ids=list(asked))}
        except Exception as exc:  # noqa: BLE001 - handed to everybody who asked, who know what to do
            for answer in asked.values():
                _fail(answer, exc)
            return
        for system_id, answer in asked.items():
            if not answer.done():
                answer.set_result(machines.get(system_id))


def _fail(answer: asyncio.Future[Machine | None], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # somebody may have stopped waiting; that is not a mistake to be logged
