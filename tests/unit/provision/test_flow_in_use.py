"""No stage wipes a node, or cuts its power, while something runs there or may run."""

from __future__ import annotations

import asyncio

import pytest

from inventory.model import Pool
from inventory.records import RunState
from provision.maas.client import MaasClient
from provision.planning import plan_bringup
from provision.stages.job import Options
from tests.unit.provision.making import admit
from tests.unit.provision.rig import Rig


async def quarantined(rig: Rig) -> None:
    """Bring the node up and admit it; automation takes it out of the pool, with its job."""
    await rig.to("enlisted", "commissioned", "deployed")
    admit(rig.access, "n1")
    rig.access.store.set_pool("n1", Pool.QUARANTINE, by="automation", why="gate: no")
    rig.access.store.end_run("b-1", RunState.DONE)


def powered(rig: Rig) -> int:
    """How often the node's BMC was told to switch its power."""
    return rig.rack.bmc("n1").log.count(0x00, 0x02)


async def test_a_reimage_that_began_before_the_job_does_not_end_it(rig: Rig) -> None:
    await quarantined(rig)
    rig.access.store.claim_run("i-1", kind="reimage", nodes=["n1"], who="ana")
    rig.runs("4711, python3")
    result = await rig.step("released", "i-1", reimage=True, reason="new kernel")
    assert (result.ok, result.code) == (False, "in-use")
    assert "python3" in result.detail
    assert rig.asked("release") == 0
    assert rig.access.store.node("n1").pool_why == "gate: no"  # not the node's fault


async def test_the_override_that_began_the_run_holds_in_its_stages(rig: Rig) -> None:
    await quarantined(rig)
    rig.access.store.claim_run("i-1", kind="reimage", nodes=["n1"], who="ana")
    rig.runs("4711, python3")
    result = await rig.step("released", "i-1", reimage=True, reason="agreed", override="in-use")
    assert result.ok
    assert rig.asked("release") == 1


async def test_a_machine_that_maas_has_anew_is_not_commissioned_under_a_job(
    rig: Rig, stranger: MaasClient
) -> None:
    await quarantined(rig)
    rig.access.store.claim_run("b-2", kind="bringup", nodes=["n1"], who="ana")
    await stranger.release(rig.system_id)
    await stranger.delete(rig.system_id)
    rig.access.store.observe("n1", system_id=None)
    assert (await rig.step("enlisted", "b-2")).ok
    rig.runs("4711, python3")
    before = rig.asked("commission")
    result = await rig.step("commissioned", "b-2")
    assert (result.ok, result.code) == (False, "in-use")
    assert rig.asked("commission") == before


async def test_a_deaf_node_that_may_run_a_job_is_waited_for_and_not_power_cycled(rig: Rig) -> None:
    await quarantined(rig)
    rig.access.store.claim_run("b-2", kind="bringup", nodes=["n1"], who="ana")
    rig.deaf()
    rig.hurry("ssh", 0.5)
    before = powered(rig)
    result = await rig.step("deployed", "b-2")
    assert (result.ok, result.code) == (False, "in-use")
    assert "waiting for SSH" in rig.notes()
    assert (powered(rig), rig.asked("release")) == (before, 0)


async def test_a_deaf_node_whose_console_says_panic_runs_nothing_and_is_power_cycled(rig: Rig) -> None:
    await quarantined(rig)
    rig.access.store.claim_run("b-2", kind="bringup", nodes=["n1"], who="ana")
    rig.deaf()
    rig.hurry("ssh", 0.5)
    before = powered(rig)
    step = asyncio.create_task(rig.step("deployed", "b-2"))
    while not step.done() and powered(rig) == before:
        rig.chassis.print(b"\r\n[  77.1] Kernel panic - not syncing: Fatal exception\r\n")
        await asyncio.sleep(0.02)
    await step
    assert powered(rig) > before


async def test_a_deaf_node_that_was_never_admitted_climbs_the_whole_ladder(rig: Rig) -> None:
    await rig.to("enlisted", "commissioned", "deployed")
    rig.access.store.end_run("b-1", RunState.DONE)
    rig.access.store.claim_run("b-2", kind="bringup", nodes=["n1"], who="ana")
    rig.deaf()
    rig.hurry("ssh", 0.5)
    await rig.step("deployed", "b-2")
    assert "no SSH: power cycle" in rig.notes()
    assert rig.asked("release") == 1


@pytest.mark.parametrize("pool", [Pool.QUARANTINE, None])
async def test_a_bringup_leaves_out_what_runs_something(rig: Rig, pool: Pool | None) -> None:
    await quarantined(rig)
    rig.access.store.set_pool("n1", pool, by="automation", why="gate: no")
    nodes = rig.access.site.nodes
    assert (await plan_bringup(rig.access, nodes, Options())).names == ("n1",)
    rig.runs("4711, python3")
    plan = await plan_bringup(rig.access, nodes, Options())
    assert plan.names == ()
    assert (plan.left_out[0].cause, plan.left_out[0].reason) == (
        "in-use",
        "1 processes use its GPUs: 4711, python3",
    )
