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

    def __call__(self, parts: Collection[str]) -> dict[str, str]:
        self.asked.append(tuple(parts))
        self.contexts.add(WHOSE.get())
        if self.broken:
            raise OSError("gone")
        return {part: f"how {part} ended" for part in self.ended & set(parts)}


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
    assert await line.passed("a") == "how a ended"


async def test_what_ends_here_is_told_at_once_and_not_looked_for() -> None:
    parts = Parts()
    line = FinishLine(parts, first_s=60, round_s=60)
    waiting = asyncio.create_task(line.passed("p"))
    while not parts.asked:
        await asyncio.sleep(0.005)
    line.ends("p", "well")
    assert await waiting == "well"
    line.ends("q", "nobody waits")


async def test_what_is_expected_is_not_missed_when_it_ends_before_it_is_waited_for() -> None:
    line = FinishLine(Parts(), first_s=60, round_s=60)
    line.expect("p")
    line.ends("p", "well")
    assert await line.passed("p") == "well"
