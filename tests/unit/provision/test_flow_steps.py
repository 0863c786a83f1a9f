"""One step of one node: what is recorded however it ends, and what stops a node between steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from inventory.errors import StoreBusy
from inventory.model import Pool, Stage
from inventory.records import RunState
from provision import flow
from provision.access import Access
from provision.errors import NodeFailed
from provision.maas.errors import MaasUnreachable
from provision.stages import configured
from provision.stages.job import NodeJob, Options, Reached
from provision.stages.site_maas import SiteMaas

Work = Callable[[NodeJob], Awaitable[Reached]]


def hands(access: Access, **works: Work) -> flow.Hands:
    return flow.Hands(access, SiteMaas(access.maas_within), works)


def raising(error: BaseException) -> Work:
    async def work(_: NodeJob) -> Reached:
        raise error

    return work


async def step(access: Access, name: str, work: Work) -> flow.StepResult:
    access.store.claim_run("b-1", kind="bringup", nodes=["r1-n01"], who="ana")
    return await flow.run_step(hands(access, **{name: work}), name, "r1-n01", "b-1", Options())


async def test_an_interrupted_step_leaves_the_node_in_no_stage(access: Access) -> None:
    begun = asyncio.Event()

    async def never(_: NodeJob) -> Reached:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(step(access, "enlisted", never))
    await begun.wait()
    assert access.store.node("r1-n01").in_stage is Stage.ENLISTED
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert access.store.node("r1-n01").in_stage is None
    assert access.store.run_progress("b-1")["r1-n01"].in_stage is None
    assert access.store.events(kinds=["interrupted"])


async def test_a_store_that_is_busy_is_no_failure_of_the_node(access: Access) -> None:
    with pytest.raises(StoreBusy):
        await step(access, "enlisted", raising(StoreBusy("x", "locked")))
    state = access.store.node("r1-n01")
    assert (state.failed_stage, state.pool) == (None, None)


async def test_a_maas_that_stayed_away_condemns_no_node(access: Access) -> None:
    result = await step(access, "enlisted", raising(MaasUnreachable("http://m", 1800, "refused")))
    assert (result.ok, result.code) == (False, "maas-unreachable")
    state = access.store.node("r1-n01")
    assert (state.failed_stage, state.reason_code, state.pool) == (Stage.ENLISTED, "maas-unreachable", None)


async def test_a_failure_puts_the_node_into_quarantine_with_its_reason(access: Access) -> None:
    result = await step(access, "verified", raising(NodeFailed("verified", "gate-no", "7 of 8 GPUs")))
    assert not result.ok
    state = access.store.node("r1-n01")
    assert (state.failed_stage, state.pool, state.pool_by) == (Stage.VERIFIED, Pool.QUARANTINE, "automation")
    assert "7 of 8 GPUs" in str(state.pool_why)


async def test_a_bug_of_ours_is_not_swallowed(access: Access) -> None:
    with pytest.raises(ZeroDivisionError):
        await step(access, "enlisted", raising(ZeroDivisionError()))
    flow.record_bug(access, "r1-n01", "b-1", "ZeroDivisionError")
    state = access.store.node("r1-n01")
    assert (state.reason_code, state.in_stage, state.pool) == ("bug", None, None)


def test_a_node_that_a_human_takes_away_meanwhile_goes_no_further(access: Access) -> None:
    access.store.claim_run("b-1", kind="bringup", nodes=["r1-n01"], who="ana")
    assert flow.stop_reason(access, "r1-n01", "b-1", Options()) is None
    access.store.set_pool("r1-n01", Pool.QUARANTINE, by="automation", why="ours")
    assert flow.stop_reason(access, "r1-n01", "b-1", Options()) is None
    access.store.set_pool("r1-n01", Pool.REPAIR, by="marta", why="PSU")
    assert flow.stop_reason(access, "r1-n01", "b-1", Options()) == flow.Stop("held", "repair by marta: PSU")


def test_a_run_stops_once_more_have_failed_than_it_may(access: Access) -> None:
    access.store.claim_run("b-1", kind="bringup", nodes=["r1-n01", "r1-n02"], who="ana")
    options = Options(max_fail=0)
    assert flow.stop_reason(access, "r1-n02", "b-1", options) is None
    access.store.fail("r1-n01", Stage.REACHABLE, run="b-1", code="x", reason="y", next="z")
    stop = flow.stop_reason(access, "r1-n02", "b-1", options)
    assert stop is not None
    assert stop.code == "max-fail"
    access.store.end_run("b-1", RunState.FAILED)


@pytest.mark.parametrize("transport", ["ssh", "worker"])
def test_a_play_is_run_where_the_operator_said(access: Access, transport: str) -> None:
    node = access.site.nodes[0]
    asked = Options(transport=transport)
    job = NodeJob(node, access.profile(node), "b-1", asked, access, SiteMaas(access.maas_within), note=print)
    assert configured.request_for(job).transport == transport
