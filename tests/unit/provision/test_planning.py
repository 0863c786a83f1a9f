"""Who takes part in a run, who does not, and why."""

from __future__ import annotations

from inventory.model import Pool, Stage
from provision.access import Access
from provision.planning import plan_bringup, plan_reimage
from provision.stages.job import Options
from tests.unit.provision.making import admit


async def test_a_new_node_goes_the_whole_way(access: Access) -> None:
    plan = await plan_bringup(access, access.site.nodes[:2], Options())
    assert plan.names == ("r1-n01", "r1-n02")
    assert [action.step for action in plan.actions] == [
        "reachable", "enlisted", "commissioned", "deployed", "configured", "verified", "pool",
    ]  # fmt: skip
    assert plan.wipes == plan.names


async def test_until_ends_the_way_early_and_wipes_nothing(access: Access) -> None:
    plan = await plan_bringup(access, access.site.nodes[:1], Options(until="commissioned"))
    assert [action.step for action in plan.actions][-1] == "commissioned"
    assert plan.wipes == ()


async def test_an_admitted_node_needs_nothing(access: Access) -> None:
    admit(access, "r1-n01")
    plan = await plan_bringup(access, access.site.nodes[:2], Options())
    assert (plan.names, plan.already) == (("r1-n02",), ("r1-n01",))


async def test_a_humans_hold_keeps_a_node_out_and_says_whose_it_is(access: Access) -> None:
    access.store.set_pool("r1-n01", Pool.QUARANTINE, by="marta", why="PSU smell")
    plan = await plan_bringup(access, access.site.nodes[:1], Options())
    assert plan.names == ()
    (left,) = plan.left_out
    assert left.reason == 'by marta today: "PSU smell"'
    assert left.next == "invoke release --nodes r1-n01 --reason '...'"


async def test_what_automation_holds_a_new_run_may_lift(access: Access) -> None:
    access.store.set_pool("r1-n01", Pool.QUARANTINE, by="automation", why="deploy failed")
    assert (await plan_bringup(access, access.site.nodes[:1], Options())).names == ("r1-n01",)


def test_a_reimage_gives_the_machine_back_before_it_deploys(access: Access) -> None:
    admit(access, "r1-n01")
    plan = plan_reimage(access, access.site.nodes[:1], Options(reimage=True, reason="repaired"))
    steps = [action.step for action in plan.actions]
    assert steps.index("released") == steps.index("deployed") - 1


def test_a_retired_node_is_never_reimaged(access: Access) -> None:
    access.store.set_pool("r1-n01", Pool.RETIRED, by="marta", why="scrapped")
    plan = plan_reimage(access, access.site.nodes[:1], Options(reimage=True))
    assert (plan.names, plan.left_out[0].cause) == ((), "retired")


async def test_planning_writes_nothing(access: Access) -> None:
    access.store.reach("r1-n01", Stage.REACHABLE, run=None)
    before = access.store.events()
    await plan_bringup(access, access.site.nodes, Options())
    plan_reimage(access, access.site.nodes, Options(reimage=True))
    assert access.store.events() == before
