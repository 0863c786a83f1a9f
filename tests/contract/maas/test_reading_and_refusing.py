"""What every MAAS answers and refuses, without a machine that boots."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace

import pytest

from provision.maas.errors import (
    MaasAuthRejected,
    MaasClockSkew,
    MaasConflict,
    MaasNotFound,
    MaasRejected,
)
from provision.maas.images import NewImage
from provision.maas.model import Deployment, MachineStatus, ResultKind
from provision.maas.transport import Ambient
from tests.contract.maas.conftest import PREFIX


async def test_says_who_it_is_and_who_we_are(target):
    assert (await target.client.version()).version[0].isdigit()
    assert (await target.client.whoami()).name


async def test_a_wrong_key_is_refused(target):
    consumer, token, _secret = target.key.value.split(":")
    wrong = replace(target.key, value=f"{consumer}:{token}:{'x' * 32}")
    async with target.connect(wrong) as client:
        with pytest.raises(MaasAuthRejected) as caught:
            await client.machines(hostname="nobody")
    assert target.key.value.split(":")[2] not in str(caught.value)


async def test_a_clock_that_is_behind_is_told_from_a_wrong_key(target):
    async with target.connect(ambient=Ambient(wall=lambda: time.time() - 900)) as client:
        with pytest.raises(MaasClockSkew, match="behind"):
            await client.machines(hostname="nobody")


async def test_an_unknown_machine_is_not_found(target):
    with pytest.raises(MaasNotFound):
        await target.client.machine("zzzzzz")
    assert await target.client.machines(hostname="no-such-machine") == ()
    assert await target.client.find(mac="02:00:5e:ff:ff:fe") is None


async def test_filters_that_make_no_sense_are_refused_with_a_reason(target):
    with pytest.raises(MaasRejected, match="banana"):
        await target.client.machines(status="banana")
    with pytest.raises(MaasRejected, match="No such tag"):
        await target.client.machines(tags="no-such-tag-anywhere")
    with pytest.raises(MaasRejected, match="No such constraint"):
        await target.client.machines(limit="1")


async def test_enlists_without_commissioning_and_forgets_again(target):
    machine = await target.enlist()
    assert machine.status is MachineStatus.NEW
    assert machine.power_type == "ipmi"
    assert (await target.client.find(mac=machine.macs[0])) == machine
    assert (await target.client.find(hostname=machine.hostname)) == machine
    await target.client.delete(machine.system_id)
    with pytest.raises(MaasNotFound):
        await target.client.machine(machine.system_id)


async def test_refuses_what_it_has_already(target):
    machine = await target.enlist()
    with pytest.raises(MaasRejected, match=f"{machine.macs[0]} already in use on {machine.hostname}"):
        await target.enlist(macs=machine.macs)
    with pytest.raises(MaasRejected, match="Hostname already exists"):
        await target.enlist(hostname=machine.hostname)


async def test_refuses_what_it_cannot_use(target):
    with pytest.raises(MaasRejected, match="power_parameters: This field is required"):
        await target.enlist(power={})
    with pytest.raises(MaasRejected, match="not a valid architecture"):
        await target.enlist(architecture="sparc/generic")
    with pytest.raises(MaasRejected, match="not a valid MAC"):
        await target.enlist(macs=("banana",))


async def test_a_list_of_ids_leaves_out_what_is_not_there(target):
    machines = [await target.enlist() for _ in range(3)]
    ids = [machine.system_id for machine in machines[:2]]
    found = await target.client.machines(ids=[*ids, "zzzzzz"])
    assert sorted(machine.system_id for machine in found) == sorted(ids)


async def test_power_parameters_come_back_and_are_not_shown(target):
    machine = await target.enlist(power={"power_address": "192.0.2.77", "power_pass": "not-a-secret"})
    power = await target.client.power_parameters(machine.system_id)
    assert power.address == "192.0.2.77"
    assert power.values["power_pass"] == "not-a-secret"
    assert "not-a-secret" not in repr(power)
    await target.client.update(machine.system_id, power_parameters_power_address="192.0.2.78")
    assert (await target.client.all_power_parameters())[machine.system_id].address == "192.0.2.78"


@pytest.mark.parametrize("call", ["deploy", "release", "abort", "mark_fixed", "exit_rescue_mode"])
async def test_a_new_machine_takes_none_of_these(target, call):
    machine = await target.enlist()
    arguments = [target.deployment] if call == "deploy" else []
    with pytest.raises(MaasConflict, match=machine.system_id):
        await getattr(target.client, call)(machine.system_id, *arguments)
    with pytest.raises(MaasConflict):
        await target.client.allocate(machine.system_id)


async def test_annotations_need_an_owner(target):
    machine = await target.enlist()
    with pytest.raises(MaasConflict, match="acquired"):
        await target.client.annotate(machine.system_id, run="1")


async def test_an_image_that_is_not_there_is_refused(target):
    machine = await target.ready()
    await target.client.allocate(machine.system_id)
    with pytest.raises(MaasRejected, match="potato"):
        await target.client.deploy(machine.system_id, Deployment(distro_series="potato"))
    await target.client.release(machine.system_id)
    await target.settled(machine.system_id, MachineStatus.READY)


async def test_pools_zones_and_tags_are_made_once_and_put_on(target):
    machine = await target.enlist()
    client, name = target.client, "muster-contract"
    for _ in range(2):
        await client.ensure_pool(name, "made by the contract suite")
        await client.ensure_zone(name)
        await client.ensure_tag(name, comment="made by the contract suite")
    assert [pool.name for pool in await client.pools()].count(name) == 1
    assert [zone.name for zone in await client.zones()].count(name) == 1
    assert [tag.name for tag in await client.tags()].count(name) == 1

    await client.tag_nodes(name, add=[machine.system_id])
    moved = await client.update(machine.system_id, pool=name, zone=name, description="row 7")
    assert (moved.pool, moved.zone, moved.tags, moved.description) == (name, name, (name,), "row 7")
    assert [one.system_id for one in await client.machines(pool=name, tags=name)] == [machine.system_id]
    await client.tag_nodes(name, remove=[machine.system_id])
    assert (await client.machine(machine.system_id)).tags == ()
    with pytest.raises(MaasRejected, match="zone"):
        await client.update(machine.system_id, zone="no-such-zone")


async def test_what_it_holds_can_be_read(target):
    images = {image.os_image for image in await target.client.images.read()}
    assert all("/" in image for image in images)
    assert all(subnet.cidr for subnet in await target.client.subnets())
    assert all(rack.system_id for rack in await target.client.rack_controllers())


async def test_a_new_machine_has_no_results_and_few_events(target):
    machine = await target.enlist()
    assert await target.client.results(machine.system_id, ResultKind.INSTALLATION) == ()
    events = await target.client.events(machine.system_id, level="DEBUG")
    assert [event.id for event in events] == sorted((event.id for event in events), reverse=True)


async def test_an_image_is_brought_there_in_pieces_and_can_be_removed(target, tmp_path):
    path = tmp_path / "image.tgz"
    path.write_bytes(secrets.token_bytes(150_000))
    new = NewImage(f"custom/{PREFIX}", "amd64/generic", path, base="ubuntu/jammy", title="contract suite")
    made = await target.client.images.upload(new, piece_bytes=1 << 16)
    try:
        assert await target.client.images.complete(made.id)
        assert PREFIX in {image.name.removeprefix("custom/") for image in await target.client.images.read()}
    finally:
        await target.client.images.delete(made.id)
    assert made.id not in {image.id for image in await target.client.images.read()}


async def test_a_machine_that_enlisted_is_accepted_and_commissioned(target):
    if target.lab is None:
        pytest.skip("a real MAAS would wait for a machine that nobody has")
    machine = await target.enlist()
    await target.client.accept(machine.system_id)
    assert (await target.settled(machine.system_id, MachineStatus.READY)).hostname == machine.hostname
