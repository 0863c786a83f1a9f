"""Waiting by level, with a clock that moves only when somebody sleeps."""

from __future__ import annotations

import pytest

from provision.errors import StageTimeout
from provision.waiting import Pace, Seen, until


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def pace(clock: Clock) -> Pace:
    return Pace(first=1.0, longest=4.0, clock=clock, sleep=clock.sleep)


async def test_returns_at_once_when_the_state_is_already_there() -> None:
    clock = Clock()

    async def look() -> Seen[str]:
        return Seen("there", "")

    assert await until(look, waited_for="it", deadline_s=10, pace=pace(clock)) == "there"
    assert clock.slept == []


async def test_looks_less_often_the_longer_it_takes_but_never_past_the_deadline() -> None:
    clock = Clock()

    async def look() -> Seen[str]:
        return Seen(None, f"at {clock.now:g}")

    with pytest.raises(StageTimeout, match="waited 10 s for the light; last seen: at 10"):
        await until(look, waited_for="the light", deadline_s=10, pace=pace(clock))
    assert clock.slept[:3] == [1.0, 1.5, 2.25]
    assert max(clock.slept) <= 4.0
    assert sum(clock.slept) == pytest.approx(10.0)


async def test_looks_once_more_at_the_deadline_itself() -> None:
    clock = Clock()

    async def look() -> Seen[str]:
        return Seen("late" if clock.now >= 10 else None, "")

    assert await until(look, waited_for="it", deadline_s=10, pace=pace(clock)) == "late"
