"""Fan-out: caps hold, every target has a result, nothing raises through."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from bmc import fleet
from bmc.capability import BmcTarget, Credential
from bmc.errors import ActionFailed, AuthRejected, Busy, DeadlinePassed, Occupied, Rejection
from bmc.fleet import each, subnet


def target(number: int) -> BmcTarget:
    """Eight to a /24."""
    return BmcTarget(f"n{number}", f"10.0.{number // 8}.{number % 8 + 1}", Credential("u", "p"))


async def test_caps_hold_per_subnet_and_in_all() -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def action(one: BmcTarget) -> str:
        for key in (subnet(one.host), "all"):
            running[key] += 1
            most[key] = max(most[key], running[key])
        for _ in range(3):
            await asyncio.sleep(0)
        for key in (subnet(one.host), "all"):
            running[key] -= 1
        return one.name

    results = await each([target(n) for n in range(64)], action, per_subnet=3, total=10)
    assert list(results) == [f"n{n}" for n in range(64)]
    assert all(result.value == name for name, result in results.items())
    assert most.pop("all") == 10
    assert set(most.values()) == {3}


async def test_one_failure_costs_no_other_result() -> None:
    async def action(one: BmcTarget) -> int:
        if one.name == "n1":
            raise Busy(one.name, one.host, Occupied.SESSIONS)
        if one.name == "n2":
            raise ZeroDivisionError
        if one.name == "n3":
            await asyncio.Event().wait()
        return 7

    results = await each([target(n) for n in range(5)], action, deadline_s=0.05)
    assert isinstance(results["n1"].error, Busy)
    assert isinstance(results["n2"].error, ActionFailed)
    assert isinstance(results["n2"].error.__cause__, ZeroDivisionError)
    assert isinstance(results["n3"].error, DeadlinePassed)
    assert [results[name].value for name in ("n0", "n4")] == [7, 7]
    assert results["n0"].ok
    assert not results["n1"].ok


async def test_an_actions_own_timeout_is_not_our_deadline() -> None:
    async def action(_one: BmcTarget) -> None:
        raise TimeoutError

    results = await each([target(0)], action)
    assert isinstance(results["n0"].error, ActionFailed)


@pytest.mark.parametrize(("attempts", "ok"), [(1, False), (2, False), (3, True)])
async def test_a_busy_bmc_is_tried_as_often_as_asked(
    attempts: int, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "FIRST_PAUSE_S", 0.001)
    tries = 0

    async def action(one: BmcTarget) -> int:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Busy(one.name, one.host, Occupied.SESSIONS, 0.001 if tries == 1 else None)
        return tries

    result = (await fleet.each([target(0)], action, attempts=attempts))["n0"]
    assert result.ok is ok
    assert tries == attempts


async def test_a_wrong_password_is_not_tried_again() -> None:
    tries = 0

    async def action(one: BmcTarget) -> None:
        nonlocal tries
        tries += 1
        raise AuthRejected(one.name, one.host, "admin", Rejection.WRONG_PASSWORD)

    await fleet.each([target(0)], action, attempts=5)
    assert tries == 1


async def test_cancelling_ends_every_action() -> None:
    ended = []

    async def action(one: BmcTarget) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(one.name)

    task = asyncio.create_task(each([target(n) for n in range(4)], action))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == ["n0", "n1", "n2", "n3"]


async def test_two_targets_of_one_name_are_refused() -> None:
    async def action(_one: BmcTarget) -> None: ...

    with pytest.raises(ValueError, match="same name"):
        await each([target(1), target(1)], action)


@pytest.mark.parametrize(
    ("host", "net"),
    [("10.1.2.3", "10.1.2.0/24"), ("fd00::1:2", "fd00::/64"), ("bmc-1.example", "bmc-1.example")],
)
def test_knows_the_subnet(host: str, net: str) -> None:
    assert subnet(host) == net
