"""Captures of consoles: record until the boot has shown what it is asked for, or the time is up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bmc.capability import BmcTarget
from bmc.console.causes import Cause
from bmc.console.record import Recorder
from bmc.errors import PatternNotSeen

_LOGIN = re.compile(rb"\blogin: ")
_LOOK_S = 0.5


class Until(StrEnum):
    """When a capture has seen enough."""

    LOGIN = "login"
    FAILURE = "failure"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Capture:
    """How a capture ended: what was seen, and the cause that the console names, if any."""

    seen: Until
    cause: Cause | None
    bytes_kept: int


async def capture(
    target: BmcTarget,
    folder: Path,
    *,
    until: Until,
    for_s: float,
    steal: bool = False,
    begin: Callable[[Recorder], Awaitable[None]] | None = None,
) -> Capture:
    """Record a console until login, until a named cause, or for `for_s` seconds.

    `begin` runs once the console is open, for example to cycle the power, so that nothing of the
    boot is missed. Raises BmcError.
    """
    async with Recorder(target, folder, steal=steal) as recorder:
        if begin is not None:
            await begin(recorder)
        waits: dict[asyncio.Future[bool], Until] = {}
        if until is not Until.TIME:
            waits[asyncio.ensure_future(_failure(recorder))] = Until.FAILURE
        if until is Until.LOGIN:
            waits[asyncio.ensure_future(_login(recorder, for_s))] = Until.LOGIN
        if not waits:
            waits[asyncio.ensure_future(_never())] = Until.TIME
        try:
            done, _ = await asyncio.wait(waits, timeout=for_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        seen = next((waits[wait] for wait in done if wait.result()), Until.TIME)
        return Capture(seen, recorder.cause(), recorder.bytes_kept)


async def _login(recorder: Recorder, for_s: float) -> bool:
    try:
        await recorder.wait_for(_LOGIN, for_s)
    except PatternNotSeen:
        return False
    return True


async def _never() -> bool:
    await asyncio.Event().wait()
    return False


async def _failure(recorder: Recorder) -> bool:
    """Return once a cause has stood on the console for two looks in a row: firmware may get past one."""
    before = None
    while True:
        cause = recorder.cause()
        if cause is not None and before is not None and cause.id == before.id:
            return True
        before = cause
        await asyncio.sleep(_LOOK_S)
