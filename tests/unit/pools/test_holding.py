"""Automatic quarantine, and the breaker that stops it."""

from __future__ import annotations

from inventory.model import Pool
from provision import flow
from provision.access import Access
from provision.planning import plan_bringup
from provision.pools import standing
from provision.stages.job import Options
from tests.unit.pools.making import admit, judge

A1 = [f"a1-n{number:02}" for number in range(1, 7)]


async def test_what_fails_is_quarantined_with_its_serial(access: Access) -> None:
    admit(access, *A1)
    await flow.quarantine(access, A1[0], run=None, why="gate: no")
    state = access.store.node(A1[0])
    assert (state.pool, state.pool_by, state.pool_why) == (Pool.QUARANTINE, "automation", "gate: no")
    assert access.store.events(kinds=["pool"])[-1].data["serial"] == "A1"


async def test_the_third_of_six_stays_and_everyone_is_told(access: Access) -> None:
    admit(access, *A1)
    for name in A1[:3]:
        await flow.quarantine(access, name, run=None, why="gate: no")
    assert [access.store.node(name).pool for name in A1[:3]] == [
        Pool.QUARANTINE,
        Pool.QUARANTINE,
        Pool.RELIABLE,
    ]
    (withheld,) = access.store.events(kinds=["breaker.withheld"])
    assert withheld.node == A1[2]
    assert withheld.message.startswith("not quarantined (gate: no): 2 of 6 reliable nodes left")
    remarks = standing.look(access).remarks()
    assert remarks[0].startswith("automatic quarantine is stopped: 2 of 6 reliable nodes left within an hour")


async def test_a_node_that_stays_without_a_yes_is_said_and_not_free(access: Access) -> None:
    admit(access, *A1)
    for name in A1[:3]:
        judge(access, name, "no", "gpu.count: 7 of 8")
        await flow.quarantine(access, name, run=None, why="gate: no")
    now = standing.look(access)
    assert now.doubtful == (A1[2],)
    assert (now.racks[0].reliable, now.racks[0].free) == (4, 3)


async def test_a_node_that_left_the_pool_under_a_job_is_not_brought_up_before_it_is_returned(
    access: Access,
) -> None:
    admit(access, A1[0])
    access.store.allocate("train", A1[:1], who="ana")
    await flow.quarantine(access, A1[0], run=None, why="gate: no")
    plan = await plan_bringup(access, [access.node(A1[0])], Options())
    assert plan.names == ()
    assert (plan.left_out[0].cause, plan.left_out[0].reason) == ("in-use", "allocated to train by ana")
    access.store.give_back(A1[:1], by="ana")
    assert (await plan_bringup(access, [access.node(A1[0])], Options())).names == (A1[0],)


async def test_a_humans_hold_stays_as_it_is(access: Access) -> None:
    access.store.set_pool(A1[0], Pool.REPAIR, by="ana", why="RMA 4711")
    await flow.quarantine(access, A1[0], run=None, why="gate: no")
    assert access.store.node(A1[0]).pool_why == "RMA 4711"
