"""One action on many BMCs at once, capped per subnet; every result is a value or a typed error."""

from __future__ import annotations

import asyncio
import ipaddress
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bmc.capability import BmcTarget
from bmc.errors import ActionFailed, BmcError, Busy, DeadlinePassed, Unreachable

T = TypeVar("T")

FIRST_PAUSE_S = 0.5  # before the second attempt; doubles


@dataclass(frozen=True, slots=True)
class Result(Generic[T]):
    """What came of one target: `error` is None where `value` counts."""

    name: str
    value: T | None
    error: BmcError | None
    took_s: float

    @property
    def ok(self) -> bool:
        return self.error is None


def subnet(host: str) -> str:
    """Return the /24 (or /64) that shares a cap; a name that is no address is its own subnet."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return str(ipaddress.ip_network((address, 24 if address.version == 4 else 64), strict=False))


async def each(
    targets: Iterable[BmcTarget],
    action: Callable[[BmcTarget], Awaitable[T]],
    *,
    per_subnet: int = 32,
    total: int = 256,
    deadline_s: float = 60.0,
    attempts: int = 1,
) -> dict[str, Result[T]]:
    """Run `action` on every target; return name -> result in the order of `targets`.

    At most `per_subnet` run at once in a subnet and `total` overall. `deadline_s` counts from
    the start of each action, not from its turn in the queue. A BMC that is busy or does not answer
    is tried up to `attempts` times within it. Raises ValueError where two targets share a name;
    cancelling cancels every action and waits for it.
    """
    wanted = list(targets)
    if len({target.name for target in wanted}) != len(wanted):
        raise ValueError("two targets have the same name")
    subnets = {net: asyncio.Semaphore(per_subnet) for net in {subnet(target.host) for target in wanted}}
    everywhere = asyncio.Semaphore(total)
    found: dict[str, Result[T]] = {}

    async def run(target: BmcTarget) -> None:
        async with subnets[subnet(target.host)], everywhere:
            found[target.name] = await _one(target, action, deadline_s, attempts)

    async with asyncio.TaskGroup() as group:
        for target in wanted:
            group.create_task(run(target))
    return {target.name: found[target.name] for target in wanted}


async def _one(
    target: BmcTarget, action: Callable[[BmcTarget], Awaitable[T]], deadline_s: float, attempts: int
) -> Result[T]:
    loop = asyncio.get_running_loop()
    started = loop.time()
    value: T | None = None
    error: BmcError | None = None
    try:
        async with asyncio.timeout(deadline_s) as limit:
            value = await _tried(target, action, attempts)
    except BmcError as exc:
        error = exc
    except Exception as exc:  # noqa: BLE001  one broken node must not cost the results of the others
        error = (
            DeadlinePassed(target.name, target.host, deadline_s)
            if limit.expired()
            else ActionFailed(target.name, target.host, type(exc).__name__)
        )
        error.__cause__ = exc
    return Result(target.name, value, error, loop.time() - started)


async def _tried(target: BmcTarget, action: Callable[[BmcTarget], Awaitable[T]], attempts: int) -> T:
    pause = FIRST_PAUSE_S
    for _ in range(attempts - 1):
        try:
            return await action(target)
        except (Busy, Unreachable) as exc:
            told = exc.retry_after_s if isinstance(exc, Busy) else None
        await asyncio.sleep(told or pause * random.uniform(0.5, 1.5))  # noqa: S311  spreads load
        pause *= 2
    return await action(target)
