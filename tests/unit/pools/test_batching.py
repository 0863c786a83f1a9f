"""Many that ask at once share one turn, and none is shown as it was before its change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from provision.pools.batching import Batch


class Work:
    """Remembers its turns; each waits until it is let go, unless all may go."""

    def __init__(self) -> None:
        self.turns: list[frozenset[str]] = []
        self.gates: list[asyncio.Event] = []
        self.free = False
        self.problems: Mapping[str, str] = {}

    async def __call__(self, names: frozenset[str]) -> Mapping[str, str]:
        gate = asyncio.Event()
        self.turns.append(names)
        self.gates.append(gate)
        if not self.free:
            await gate.wait()
        return self.problems


async def begun(work: Work, turns: int) -> None:
    """Wait until so many turns have begun."""
    async with asyncio.timeout(5):
        while len(work.turns) < turns:
            await asyncio.sleep(0)


async def test_who_asks_during_a_turn_is_in_the_next_one_with_the_others() -> None:
    batch, work = Batch(), Work()
    first = asyncio.create_task(batch.ask(["n1"], work))
    await begun(work, 1)
    others = [asyncio.create_task(batch.ask([name], work)) for name in ("n1", "n2", "n3")]
    await asyncio.sleep(0)
    work.free = True
    work.gates[0].set()
    await asyncio.gather(first, *others)
    assert work.turns == [frozenset({"n1"}), frozenset({"n1", "n2", "n3"})]


async def test_everyone_hears_of_the_own_problems_only() -> None:
    batch, work = Batch(), Work()
    work.problems = {"n1": "locked"}
    work.free = True
    one, two = await asyncio.gather(batch.ask(["n1"], work), batch.ask(["n2"], work))
    assert (one, two) == ({"n1": "locked"}, {})
    work.problems = {}
    assert await batch.ask(["n1"], work) == {}


async def test_a_turn_that_is_cancelled_leaves_the_others_to_the_next() -> None:
    batch, work = Batch(), Work()
    blocker = asyncio.create_task(batch.ask(["n0"], work))
    await begun(work, 1)
    leader = asyncio.create_task(batch.ask(["n1"], work))
    follower = asyncio.create_task(batch.ask(["n2"], work))
    await asyncio.sleep(0)
    work.gates[0].set()
    await blocker
    await begun(work, 2)
    assert work.turns[1] == frozenset({"n1", "n2"})
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    await begun(work, 3)
    work.gates[2].set()
    await follower
    assert work.turns[2] == frozenset({"n2"})


async def test_a_turn_rests_ten_times_as_long_as_it_took_but_not_for_ever() -> None:
    now, rests = [100.0], []

    async def sleep(seconds: float) -> None:
        rests.append(round(seconds, 3))
        now[0] += seconds

    async def work(_names: frozenset[str]) -> Mapping[str, str]:
        now[0] += took
        return {}

    batch = Batch(clock=lambda: now[0], sleep=sleep)
    for took in (0.1, 3.0, 0.0, 0.0):  # noqa: B007  work reads it
        await batch.ask(["n1"], work)
    assert rests == [0.0, 1.0, 5.0, 0.0]
