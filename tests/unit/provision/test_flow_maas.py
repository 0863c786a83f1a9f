"""Stages against a MAAS that loses answers, goes away, or holds the machine for somebody else."""

from __future__ import annotations

import asyncio

import pytest

from inventory.model import Stage
from inventory.records import RunState
from lab.maas import MaasServer
from provision.maas.client import MaasClient
from provision.maas.model import Deployment, Machine, MachineStatus, NewMachine
from provision.stages.job import DEPLOY_ASKED
from tests.unit.provision.rig import FAST, MAC, Rig


class Losing(MaasClient):
    """A client whose first answer to one operation is lost on the way, after MAAS did it."""

    maas: MaasServer
    loses: str

    async def _operate(self, system_id: str, op: str, **form: str) -> Machine:
        if op == self.loses:
            self.loses = ""
            self.maas.set_fault("half-body")
            asyncio.get_running_loop().call_later(0.4, lambda: self.maas.set_fault("half-body", on=False))
        return await super()._operate(system_id, op, **form)


@pytest.mark.parametrize(
    ("before", "name", "operation"),
    [
        (("enlisted",), "commissioned", "commission"),
        (("enlisted", "commissioned"), "deployed", "deploy"),
        (("enlisted", "commissioned", "deployed"), "released", "release"),
    ],
)
async def test_what_maas_may_have_done_is_looked_at_before_it_is_asked_again(
    rig: Rig, before: tuple[str, ...], name: str, operation: str
) -> None:
    await rig.to(*before)
    run = "b-1"
    if name == "released":
        run = "i-1"
        rig.access.store.end_run("b-1", RunState.DONE)
        rig.access.store.claim_run(run, kind="reimage", nodes=["n1"], who="ana")
    await rig.site_maas.client.close()
    client = Losing(rig.maas.url, rig.access.secret("file:key"), limits=FAST)
    client.maas, client.loses = rig.maas, operation
    rig.site_maas._client = client
    result = await rig.step(name, run)
    assert result.ok, result
    assert rig.asked(operation) == 1, rig.maas.request_log
    assert "looking before asking again" in rig.notes()
    assert "MAAS had done it" in rig.notes()


async def test_a_maas_that_is_away_for_longer_than_the_stage_may_take_is_waited_for_and_said(
    rig: Rig,
) -> None:
    await rig.to("enlisted")
    task = asyncio.create_task(rig.step("commissioned"))
    await rig.until("op=commission")
    rig.maas.set_fault("maas-down")
    deadline = asyncio.get_running_loop().time() + 4.5  # the stage itself may take 3 s
    while asyncio.get_running_loop().time() < deadline:
        assert not task.done(), task.result()
        await asyncio.sleep(0.1)
    assert "waiting for MAAS: " in rig.notes()
    rig.maas.set_fault("maas-down", on=False)
    assert (await task).ok
    assert "MAAS answers again after " in rig.notes()
    assert rig.asked("commission") == 1


async def test_an_overloaded_maas_is_asked_again_later(rig: Rig) -> None:
    await rig.to("enlisted")
    rig.maas.set_fault("maas-503", value=0.2)
    task = asyncio.create_task(rig.step("commissioned"))
    await rig.until("GET /MAAS/api/2.0/machines/")
    await asyncio.sleep(1.0)
    assert not task.done()
    rig.maas.set_fault("maas-503", on=False)
    assert (await task).ok
    assert rig.asked("commission") == 1


async def test_patience_with_maas_ends(rig: Rig) -> None:
    await rig.to("enlisted")
    rig.hurry("maas", 0.5)
    rig.maas.set_fault("maas-down")
    result = await rig.step("commissioned")
    assert (result.ok, result.code) == (False, "maas-unreachable")
    assert rig.access.store.node("n1").pool is None


async def test_a_run_killed_between_its_record_and_the_deployment_deploys_once(rig: Rig) -> None:
    await rig.to("enlisted", "commissioned")
    rig.access.store.event("n1", DEPLOY_ASKED, run="b-1", message="custom/debian-12")
    await rig.to("deployed")
    assert rig.asked("deploy") == 1


async def test_a_run_killed_after_the_deployment_was_asked_for_waits_for_it(
    rig: Rig, stranger: MaasClient
) -> None:
    await rig.to("enlisted", "commissioned")
    rig.access.store.event("n1", DEPLOY_ASKED, run="b-1", message="custom/debian-12")
    await stranger.deploy(rig.system_id, Deployment(osystem="custom", distro_series="debian-12"))
    await rig.to("deployed")
    assert rig.asked("deploy") == 1
    assert rig.access.store.node("n1").deployed_at is not None


async def test_a_deployment_that_a_cancelled_run_left_behind_is_ours(rig: Rig, stranger: MaasClient) -> None:
    await rig.to("enlisted", "commissioned")
    rig.access.store.event("n1", DEPLOY_ASKED, run="b-0", message="custom/debian-12")
    await stranger.deploy(rig.system_id, Deployment(osystem="custom", distro_series="debian-12"))
    while (await stranger.machine(rig.system_id)).status != MachineStatus.DEPLOYED:
        await asyncio.sleep(0.02)
    await rig.to("deployed")
    assert rig.asked("deploy") == 1
    assert rig.access.store.node("n1").deployed_at is not None


@pytest.mark.parametrize("deploys", [False, True])
async def test_a_machine_that_somebody_else_took_is_left_alone(
    rig: Rig, stranger: MaasClient, deploys: bool
) -> None:
    await rig.to("enlisted", "commissioned")
    if deploys:
        await stranger.deploy(rig.system_id, Deployment(osystem="custom", distro_series="debian-12"))
    else:
        await stranger.allocate(rig.system_id)
    boots = rig.rack.bmc("n1").log.count(0x00, 0x08)
    result = await rig.step("deployed")
    assert (result.ok, result.code) == (False, "not-ours")
    assert rig.asked("deploy") == int(deploys)
    assert rig.rack.bmc("n1").log.count(0x00, 0x08) == boots
    assert rig.access.store.node("n1").pool is None


async def test_a_machine_whose_power_maas_would_switch_at_another_bmc_is_not_enlisted(
    rig: Rig, stranger: MaasClient
) -> None:
    power = {"power_address": "127.0.0.9", "power_user": "admin", "power_pass": "pw"}
    await stranger.create(NewMachine(hostname="n1", macs=(MAC,), architecture="amd64/generic", power=power))
    result = await rig.step("enlisted")
    assert (result.ok, result.code) == (False, "maas-mismatch")
    assert "127.0.0.9" in result.detail


async def test_a_bmc_of_another_machine_is_never_commissioned(rig: Rig) -> None:
    """The cable was moved after the BMC had been seen."""
    await rig.to("enlisted")
    rig.disguise("OTHER")
    result = await rig.step("commissioned")
    assert (result.ok, result.code) == (False, "identity")
    assert rig.asked("commission") == 0


async def test_a_node_about_to_be_wiped_leaves_the_pool_first(rig: Rig) -> None:
    """Its run was cut short before it could take the node out."""
    await rig.to("enlisted", "commissioned", "deployed")
    store = rig.access.store
    store.reach("n1", Stage.VERIFIED, run="b-1")
    store.record_verdict("n1", run="b-1", level="quick", answer="yes", reasons=[], evidence=None)
    await rig.to("pool")
    store.end_run("b-1", RunState.DONE)
    store.claim_run("i-1", kind="reimage", nodes=["n1"], who="ana")
    result = await rig.step("released", "i-1", reimage=True, reason="new kernel", who="ana")
    assert result.ok
    assert store.node("n1").pool is None
