"""Reconciling with a MAAS: what is found is put right, and then nothing is found."""

from __future__ import annotations

from dataclasses import replace

from provision.maas.differences import DifferenceKind, SeenMachine, WantedMachine, compare
from provision.maas.errors import MaasRejected
from provision.maas.reconcile import Applied, Create, apply, plan


async def look(target):
    """Read the machines that this test made: a real MAAS has others, which are not ours to compare."""
    machines = await target.client.machines(ids=target.made)
    power = await target.client.all_power_parameters()
    return [SeenMachine(machine, power.get(machine.system_id)) for machine in machines]


def wanted_of(new) -> WantedMachine:
    return WantedMachine(
        new.hostname, new.macs, power=new.power, pool="muster-contract", zone="muster-contract"
    )


POWER = {"power_user": "bringer", "power_pass": "not-a-secret"}


async def test_differences_are_put_right_and_then_gone(target):
    news = [target.new(power=POWER | {"power_address": f"192.0.2.{at}"}) for at in (201, 202, 203)]
    nodes = [replace(wanted_of(new), tags=frozenset({"muster-contract"})) for new in news]
    # One node is there and right but for its groups, two have each other's name, one is missing.
    swapped = [replace(news[0], hostname=news[1].hostname), replace(news[1], hostname=news[0].hostname)]
    for new in swapped:
        target.made.append((await target.client.create(new)).system_id)
    tags = ["muster-contract"]

    before = compare(nodes, await look(target), managed_tags=tags)
    assert [one.kind for one in before.differences].count(DifferenceKind.RENAMED) == 2
    assert [one.node for one in before.differences if one.kind is DifferenceKind.MISSING] == [
        news[2].hostname
    ]

    seen: list[Applied] = []
    done = await apply(target.client, plan(before, nodes), on_change=seen.append)
    made = await target.client.find(hostname=news[2].hostname)
    assert made is not None
    target.made.append(made.system_id)
    assert [one.error for one in done] == [None] * len(done)
    assert tuple(seen) == done
    assert compare(nodes, await look(target), managed_tags=tags).differences == ()


async def test_a_change_that_maas_refuses_does_not_stop_the_others(target):
    taken = target.new()
    target.made.append((await target.client.create(taken)).system_id)
    other = target.new(power=POWER | {"power_address": "192.0.2.204"})
    doubles = [replace(target.new(), macs=taken.macs), other]
    nodes = [wanted_of(new) for new in doubles]
    made = plan(compare(nodes, []), nodes)
    refused, fine = await apply(target.client, made, on_change=lambda _: None)
    assert isinstance(refused.error, MaasRejected)
    assert isinstance(refused.change, Create)
    assert fine.error is None
    machine = await target.client.find(hostname=doubles[1].hostname)
    assert machine is not None
    assert machine.pool == "muster-contract"
    target.made.append(machine.system_id)
