"""A machine's life, call by call, as a machine that boots lives it."""

from __future__ import annotations

import pytest

from provision.maas.errors import MaasConflict, MaasForbidden, MaasLocked
from provision.maas.model import LinkMode, MachineStatus, ResultKind


async def test_commissioning_finds_hardware_and_keeps_its_results(target):
    machine = await target.ready()
    disks = await target.client.hardware.block_devices(machine.system_id)
    assert disks
    assert all(disk.size > 0 for disk in disks)
    results = await target.client.results(machine.system_id, ResultKind.COMMISSIONING, include_output=True)
    assert results
    assert all(result.kind == "Commissioning" and not result.failed for result in results)
    assert all(result.output is not None for result in results)
    kinds = [event.type for event in await target.client.events(machine.system_id)]
    assert kinds.index("Ready") < kinds.index("Commissioning")  # newest first


async def test_deploys_locks_and_releases_with_erasing(target):
    client, machine = target.client, await target.ready()
    name = machine.system_id
    linked = await _link_automatically(target, name)
    allocated = await client.allocate(name, agent_name="muster", comment="contract suite")
    assert allocated.status is MachineStatus.ALLOCATED
    with pytest.raises(MaasConflict):
        await client.allocate(name)
    noted = await client.annotate(name, muster_run="42")
    assert noted.system_id == name

    assert (await client.deploy(name, target.deployment)).status is MachineStatus.DEPLOYING
    with pytest.raises(MaasConflict, match="Deploying"):
        await client.deploy(name, target.deployment)
    with pytest.raises(MaasConflict):
        await client.commission(name)
    deployed = await target.settled(name, MachineStatus.DEPLOYED)
    assert deployed.addresses or not linked
    assert deployed.distro_series
    assert not deployed.in_transition

    assert (await client.lock(name)).locked
    for refused in (client.release(name), client.power_off(name), client.mark_broken(name, comment="x")):
        with pytest.raises(MaasLocked):
            await refused
    assert not (await client.unlock(name)).locked

    await client.release(name, erase=True, quick_erase=True)
    await target.settled(name, MachineStatus.READY)


async def test_deploys_a_ready_machine_without_allocating_first(target):
    machine = await target.ready()
    await target.client.deploy(machine.system_id, target.deployment)
    await target.settled(machine.system_id, MachineStatus.DEPLOYED)
    with pytest.raises(MaasForbidden):
        await target.client.delete(machine.system_id)
    await target.client.release(machine.system_id)
    await target.settled(machine.system_id, MachineStatus.READY)


async def test_aborts_a_deployment(target):
    machine = await target.ready()
    await target.client.deploy(machine.system_id, target.deployment)
    await target.client.abort(machine.system_id, comment="contract suite")
    stopped = await target.settled(machine.system_id, MachineStatus.ALLOCATED, MachineStatus.READY)
    if stopped.status is MachineStatus.ALLOCATED:
        await target.client.release(machine.system_id)
        await target.settled(machine.system_id, MachineStatus.READY)


async def test_broken_and_fixed(target):
    machine = await target.ready()
    broken = await target.client.mark_broken(machine.system_id, comment="fan 3 stands still")
    assert broken.status is MachineStatus.BROKEN
    assert "fan 3 stands still" in broken.error_description
    assert (await target.client.mark_fixed(machine.system_id)).status is MachineStatus.READY
    with pytest.raises(MaasConflict):
        await target.client.mark_fixed(machine.system_id)


async def test_rescue_mode_and_back(target):
    machine = await target.ready()
    await target.client.rescue_mode(machine.system_id)
    await target.settled(machine.system_id, MachineStatus.RESCUE_MODE)
    with pytest.raises(MaasConflict, match="Rescue mode"):
        await target.client.release(machine.system_id)
    await target.client.exit_rescue_mode(machine.system_id)
    await target.settled(machine.system_id, MachineStatus.READY)


async def test_power_is_asked_of_the_bmc_and_given_to_allocated_machines_only(target):
    machine = await target.ready()
    assert await target.client.query_power_state(machine.system_id) in {"on", "off", "unknown", "error"}
    if machine.owner is None:
        with pytest.raises(MaasConflict, match="allocated"):
            await target.client.power_on(machine.system_id)


async def test_storage_and_links_of_a_ready_machine(target):
    machine = await target.ready()
    await target.client.hardware.set_storage_layout(machine.system_id, "flat")
    if not await _link_automatically(target, machine.system_id):
        pytest.skip("the first interface is on no subnet of this MAAS")
    interface = (await target.client.hardware.interfaces(machine.system_id))[0]
    for link in interface.links:
        freed = await target.client.hardware.unlink_subnet(machine.system_id, interface.id, link.id)
        assert link.id not in {other.id for other in freed.links}
    # What a deployment needs is put back.
    assert await _link_automatically(target, machine.system_id)


async def _link_automatically(target, system_id):
    """Give the first interface an address of its subnet; False where it is on none."""
    interface = (await target.client.hardware.interfaces(system_id))[0]
    found = [subnet for subnet in await target.client.subnets() if subnet.vlan_id == interface.vlan_id]
    if not found:
        return False
    linked = await target.client.hardware.link_subnet(
        system_id, interface.id, LinkMode.AUTO, subnet=found[0].id
    )
    assert linked.mac == interface.mac
    assert "auto" in {link.mode for link in linked.links}
    return True
