"""Waiting by level: look until the wanted state is there, with a deadline that says what for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from provision.errors import StageTimeout

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """One look: `value` once the wanted state is there, else None and `state` for the message.

    `counts` False: the time since the last look is not held against the deadline, because whoever
    would tell does not answer.
    """

    value: T | None
    state: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to look, in seconds: from `first`, growing by a half, up to `longest`."""

    first: float = 0.5
    longest: float = 10.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def until(
    look: Callable[[], Awaitable[Seen[T]]], *, waited_for: str, deadline_s: float, pace: Pace | None = None
) -> T:
    """Call `look` until it sees the wanted state. Raises StageTimeout, naming what was last seen."""
    pace = pace or Pace()
    looked = pace.clock()
    left = deadline_s
    pause = pace.first
    last = ""
    while True:
        seen = await look()
        if seen.value is not None:
            return seen.value
        last = seen.state or last
        before, looked = looked, pace.clock()
        if seen.counts:
            left -= looked - before
            if left <= 0:
                raise StageTimeout(waited_for, deadline_s, last=last)
        await pace.sleep(min(pause, left))
        pause = min(pause * 1.5, pace.longest)
