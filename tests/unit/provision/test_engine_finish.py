"""Many who wait for parts of runs share one look a round, and none hears of the others."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Collection

from provision.finish import FinishLine

WHOSE = contextvars.ContextVar("WHOSE", default="nobody")


class Parts:
    """Parts that a test ends, and what was asked about them."""

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.asked: list[tuple[str, ...]] = []
        self.contexts: set[str] = set()
        self.broken = False

    def __call__(self, parts: Collection[str]) -> set[str]:
        self.asked.append(tuple(parts))
        self.contexts.add(WHOSE.get())
        if self.broken:
            raise OSError("gone")
        return self.ended & set(parts)


async def test_all_who_wait_are_asked_about_at_once() -> None:
    parts = Parts()
    line = FinishLine(parts, round_s=0.01)
    waiting = [asyncio.create_task(line.passed(f"p{n}")) for n in range(50)]
    while not parts.asked:
        await asyncio.sleep(0.005)
    assert len(parts.asked[0]) == 50
    parts.ended = {f"p{n}" for n in range(49)}
    await asyncio.gather(*waiting[:49])
    assert not waiting[49].done()
    parts.ended.add("p49")
    await waiting[49]
    looks = len(parts.asked)
    await asyncio.sleep(0.05)
    assert len(parts.asked) == looks  # nobody waits, nothing is asked


async def test_looking_happens_outside_of_whoever_asks() -> None:
    """The engine records what is asked in a workflow's context as a step of that workflow."""
    parts = Parts()
    parts.ended = {"p"}
    WHOSE.set("a workflow")
    await FinishLine(parts, round_s=0.01).passed("p")
    assert parts.contexts == {"nobody"}


async def test_whoever_stops_waiting_takes_nothing_from_the_others() -> None:
    parts = Parts()
    line = FinishLine(parts, round_s=0.01)
    first, second = (asyncio.create_task(line.passed("p")) for _ in range(2))
    while not parts.asked:
        await asyncio.sleep(0.005)
    first.cancel()
    parts.ended = {"p"}
    await second
    assert first.cancelled()


async def test_a_look_that_fails_is_told_to_all_and_the_next_begins_anew() -> None:
    parts = Parts()
    parts.broken = True
    line = FinishLine(parts, round_s=0.01)
    for answer in await asyncio.gather(line.passed("a"), line.passed("b"), return_exceptions=True):
        assert isinstance(answer, OSError)
    parts.broken, parts.ended = False, {"a"}
    await line.passed("a")
