"""Whether something runs on a node, by what it says of itself, whatever pool it is in."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from inventory.model import Pool
from provision import guards, usage
from provision.access import Access
from provision.errors import Refused
from provision.guards import Asking
from provision.stages.job import DEPLOY_ASKED
from tests.unit.provision.making import admit
from tests.unit.provision.rig import Rig

NODE = "r1-n01"
Says = Callable[[str], None]


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Says:
    """Makes every node answer SSH with the output of a shell command."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def put(body: str) -> None:
        (programs / "ssh").write_text(f"#!/bin/sh\n{body}\n")
        (programs / "ssh").chmod(0o755)

    return put


def deploy(access: Access, *, ago: timedelta = timedelta()) -> None:
    access.store.observe(NODE, deployed_at=datetime.now(UTC) - ago)


async def refused(access: Access) -> Refused | None:
    return await guards.in_use(access, access.node(NODE))


@pytest.mark.parametrize("pool", [None, Pool.QUARANTINE, Pool.REPAIR, Pool.SPARE, Pool.RELIABLE])
@pytest.mark.parametrize("by", ["automation", "marta"])
async def test_a_node_that_runs_something_is_in_use_in_every_pool(
    access: Access, says: Says, pool: Pool | None, by: str
) -> None:
    says("echo '4711, python3'")
    deploy(access, ago=timedelta(hours=1))
    admit(access, NODE)
    access.store.set_pool(NODE, pool, by=by, why="moved")
    found = await refused(access)
    assert found is not None
    assert (found.guard, found.reason) == ("in-use", "1 processes use its GPUs")


@pytest.mark.parametrize("pool", [None, Pool.QUARANTINE, Pool.REPAIR, Pool.SPARE, Pool.RELIABLE])
async def test_a_node_that_has_served_and_cannot_be_asked_is_in_use(
    access: Access, says: Says, pool: Pool | None
) -> None:
    says("exit 255")
    deploy(access, ago=timedelta(hours=1))
    admit(access, NODE)
    access.store.set_pool(NODE, pool, by="automation", why="moved")
    found = await refused(access)
    assert found is not None
    assert "cannot be asked what runs on it" in found.reason


async def test_a_node_whose_gpu_tool_fails_cannot_tell_what_runs(access: Access, says: Says) -> None:
    says("exit 9")
    admit(access, NODE)
    access.store.set_pool(NODE, Pool.QUARANTINE, by="automation", why="gate: no")
    found = await refused(access)
    assert found is not None
    assert "nvidia-smi ended with 9" in found.reason


async def test_a_node_that_was_deployed_and_never_admitted_is_asked_and_may_stay_silent(
    access: Access, says: Says
) -> None:
    deploy(access)
    says("exit 255")
    assert await refused(access) is None
    says("echo '4711, python3'")
    assert await refused(access) is not None


async def test_a_node_that_muster_never_deployed_is_not_asked(access: Access, says: Says) -> None:
    says("echo '4711, python3'")
    assert await refused(access) is None


@pytest.mark.parametrize("ended_by", ["deployed_at", "last_power_loss_at", "asked"])
async def test_a_deployment_or_a_power_loss_ends_what_ran(access: Access, says: Says, ended_by: str) -> None:
    says("exit 255")
    deploy(access, ago=timedelta(hours=1))
    admit(access, NODE)
    access.store.set_pool(NODE, Pool.QUARANTINE, by="automation", why="gate: no")
    assert usage.has_served(access, access.store.node(NODE))
    now = datetime.now(UTC)
    if ended_by == "asked":
        access.store.event(NODE, DEPLOY_ASKED, message="custom/debian-12")
    elif ended_by == "deployed_at":
        access.store.observe(NODE, deployed_at=now)
    else:
        access.store.observe(NODE, last_power_loss_at=now)
    assert not usage.has_served(access, access.store.node(NODE))
    assert await refused(access) is None


async def test_a_human_may_pass_the_guard_by_its_name_with_a_reason(access: Access, says: Says) -> None:
    says("exit 255")
    admit(access, NODE)
    access.store.set_pool(NODE, Pool.QUARANTINE, by="automation", why="gate: no")
    nodes = [access.node(NODE)]
    with pytest.raises(Refused, match="in-use"):
        await guards.guard(access, nodes, action="reimage", asking=Asking(True, None, reason="repaired"))
    asking = Asking(True, None, override="in-use", reason="I stood before it: the screen says panic")
    await guards.guard(access, nodes, action="reimage", asking=asking)


async def test_one_question_to_each_of_many_nodes(access: Access, says: Says, tmp_path: Path) -> None:
    says(f"echo x >>{tmp_path}/asked")
    admit(access, *(node.name for node in access.site.nodes))
    assert await usage.look(access, access.site.nodes) == {}
    assert (tmp_path / "asked").read_text().count("x") == len(access.site.nodes)


async def served(rig: Rig) -> None:
    """Bring the node up, admit it, have automation take it out, and make it deaf."""
    await rig.to("enlisted", "commissioned", "deployed")
    admit(rig.access, "n1")
    rig.access.store.set_pool("n1", Pool.QUARANTINE, by="automation", why="gate: no")
    rig.deaf()


async def test_a_node_that_is_known_to_be_off_runs_nothing(rig: Rig) -> None:
    await served(rig)
    node = rig.access.node("n1")
    assert await guards.in_use(rig.access, node) is not None
    await rig.chassis.power_off()
    assert await guards.in_use(rig.access, node) is None


async def test_a_bmc_of_another_machine_does_not_say_that_the_node_is_off(rig: Rig) -> None:
    await served(rig)
    await rig.chassis.power_off()
    rig.disguise("OTHER")
    assert await guards.in_use(rig.access, rig.access.node("n1")) is not None
