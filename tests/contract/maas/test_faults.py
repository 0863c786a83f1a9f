"""What the client makes of a MAAS in trouble. In the lab only: a real one is not broken on purpose."""

from __future__ import annotations

import asyncio

import pytest

from provision.maas.errors import (
    MaasNoRack,
    MaasUnavailable,
    MaasUncertain,
    MaasUnreachable,
)
from provision.maas.model import MachineStatus, ResultKind
from provision.maas.reasons import failure_reason


async def test_a_failed_deployment_gives_its_reason(target, fault):
    machine = await target.ready()
    fault("deploy-fails", machine=machine.hostname)
    await target.client.deploy(machine.system_id, target.deployment)
    failed = await target.settled(machine.system_id, MachineStatus.FAILED_DEPLOYMENT)
    assert failed.failed
    reason = failure_reason(
        await target.client.events(machine.system_id),
        await target.client.results(machine.system_id, ResultKind.INSTALLATION, include_output=True),
    )
    assert reason
    assert "refer to the installation log" not in reason


async def test_a_failed_commissioning_names_the_script(target, fault):
    machine = await target.enlist()
    fault("commission-fails", machine=machine.hostname)
    await target.client.commission(machine.system_id)
    await target.settled(machine.system_id, MachineStatus.FAILED_COMMISSIONING)
    results = await target.client.results(machine.system_id, ResultKind.COMMISSIONING, include_output=True)
    failed = [result.name for result in results if result.failed]
    reason = failure_reason(await target.client.events(machine.system_id), results)
    assert failed
    assert failed[0] in (reason or "")


async def test_failed_testing_names_the_test_and_can_be_overridden(target, fault):
    machine = await target.ready()
    fault("test-fails", machine=machine.hostname)
    await target.client.test(machine.system_id)
    await target.settled(machine.system_id, MachineStatus.FAILED_TESTING)
    results = await target.client.results(machine.system_id, ResultKind.TESTING, include_output=True)
    assert failure_reason(await target.client.events(machine.system_id), results)
    fixed = await target.client.override_failed_testing(machine.system_id, comment="known")
    assert fixed.status is MachineStatus.READY


async def test_a_busy_maas_is_waited_for_and_then_named(target, fault):
    machine = await target.enlist()
    fault("maas-503", value=1)
    async with target.connect(deadline_s=0.5) as client:
        with pytest.raises(MaasUnavailable) as caught:
            await client.commission(machine.system_id)
    assert caught.value.retry_after == 1.0
    assert (caught.value.call, caught.value.machine) == ("commission", machine.system_id)


async def test_a_maas_that_is_away_is_waited_for(target, fault):
    fault("maas-down")
    async with target.connect(deadline_s=0.3) as client:
        with pytest.raises(MaasUnreachable):
            await client.machines()
    waiting = asyncio.create_task(target.client.machines())
    await asyncio.sleep(0)
    fault("maas-down", on=False)
    assert await waiting == ()


async def test_an_act_is_never_done_twice_over_a_broken_answer(target, fault):
    machine = await target.enlist()
    before = target.lab.request_log.get(f"POST /MAAS/api/2.0/machines/{machine.system_id}/?op=commission", 0)
    fault("half-body")
    with pytest.raises(MaasUncertain):
        await target.client.commission(machine.system_id)
    fault("half-body", on=False)
    asked = target.lab.request_log[f"POST /MAAS/api/2.0/machines/{machine.system_id}/?op=commission"]
    assert asked - before == 1
    assert (await target.client.machine(machine.system_id)).status is not MachineStatus.NEW


async def test_a_proxy_page_is_not_taken_for_maas(target, fault):
    machine = await target.enlist()
    fault("html-error")
    async with target.connect(deadline_s=0.3) as client:
        with pytest.raises(MaasUnreachable, match="a proxy answered 502"):
            await client.machines()
        with pytest.raises(MaasUncertain):
            await client.commission(machine.system_id)


async def test_a_lost_rack_controller_is_told_from_a_lost_maas(target, fault):
    machine = await target.ready()
    fault("no-rack")
    with pytest.raises(MaasNoRack):
        await target.client.query_power_state(machine.system_id)
    with pytest.raises(MaasNoRack):
        await target.client.deploy(machine.system_id, target.deployment)
