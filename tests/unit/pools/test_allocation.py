"""Handing nodes out under a name, and putting spares in the place of failed ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from inventory.errors import NotFree
from inventory.model import Pool
from provision.access import Access
from provision.errors import BadRequest, NameTaken, NotEnough, RelaunchFailed, UnknownAllocation
from provision.pools import allocation, replacing
from provision.pools.allocation import HandedOut
from provision.pools.choosing import Wanted
from tests.unit.pools.making import admit, consent, hold

A1 = [f"a1-n{number:02}" for number in range(1, 7)]
A2 = [f"a2-n{number:02}" for number in range(1, 5)]
B1 = [f"b1-n{number:02}" for number in range(1, 6)]


async def give(access: Access, name: str, count: int, **how: bool) -> HandedOut:
    return await allocation.allocate(access, name, Wanted(count, **how), access.site.nodes, reason="test")


def names(result: HandedOut) -> list[str]:
    return [node.name for node in result.nodes]


def someone_else(access: Access) -> Access:
    return dataclasses.replace(access, settings=dataclasses.replace(access.settings, who="tom"))


async def test_the_same_name_gives_the_same_nodes_and_another_name_others(access: Access) -> None:
    admit(access, *A1)
    first = await give(access, "train", 3)
    admit(access, *A2)
    again = await give(access, "train", 3)
    assert (names(again), again.already) == (names(first), True)
    assert names(await give(access, "train", 0)) == names(first)
    assert not set(names(await give(access, "other", 3))) & set(names(first))


async def test_a_name_of_somebody_else_is_refused(access: Access) -> None:
    admit(access, *A1)
    await give(access, "train", 2)
    with pytest.raises(NameTaken, match="train belongs to marta"):
        await give(someone_else(access), "train", 2)


async def test_another_count_for_a_name_is_refused(access: Access) -> None:
    admit(access, *A1)
    await give(access, "train", 2)
    with pytest.raises(BadRequest, match="train is there already, with 2 and not 3"):
        await give(access, "train", 3)


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "x" * 64])
async def test_a_name_that_could_be_no_file_is_refused(access: Access, name: str) -> None:
    with pytest.raises(BadRequest, match="is no name"):
        await give(access, name, 1)


async def test_too_few_says_what_keeps_the_others_back(access: Access) -> None:
    admit(access, *A1[:3])
    hold(access, A1[0])
    with pytest.raises(NotEnough) as refused:
        await give(access, "train", 3)
    assert refused.value.why.startswith(
        "2 free and proven of profile big; not free: 14: it is in no pool, 1: "
    )
    assert access.store.allocations() == {}


async def test_a_pod_that_cannot_do_it_alone_is_refused_where_one_pod_is_asked_for(access: Access) -> None:
    admit(access, *A1[:2], *B1[:3])
    assert len((await give(access, "any", 4)).nodes) == 4
    access.store.give_back(list(access.store.allocations()), by="marta")
    with pytest.raises(NotEnough, match="not enough reliable nodes, 4"):
        await give(access, "one", 4, same_pod=True)
    assert names(await give(access, "one", 3, same_pod=True)) == B1[:3]


async def test_neighbours_in_a_rack_are_neighbours_in_the_hostfile(access: Access) -> None:
    admit(access, *reversed(B1), *reversed(A1))
    given = names(await give(access, "all", 11))
    assert given == [*A1, *B1]
    assert list(access.store.allocations()) == given


async def test_chooses_anew_where_another_was_quicker(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(access, *A1[:3])
    plan = allocation.plan
    calls = []

    async def overtaken(*arguments: object) -> object:
        chosen = await plan(*arguments)  # type: ignore[arg-type]
        calls.append(chosen)
        if len(calls) == 1:
            access.store.allocate("quick", [chosen[0].name], who="tom")
        return chosen

    monkeypatch.setattr(allocation, "plan", overtaken)
    given = names(await give(access, "train", 2))
    assert len(calls) == 2
    assert set(given) == set(A1[:3]) - {calls[0][0].name}


async def test_an_unknown_name_says_the_nearest(access: Access) -> None:
    admit(access, *A1)
    await give(access, "train-7", 2)
    with pytest.raises(UnknownAllocation) as unknown:
        allocation.members_of(access, "train-8")
    assert unknown.value.nearest == "train-7"


async def test_what_is_returned_can_be_handed_out_again(access: Access) -> None:
    admit(access, *A1[:2])
    await give(access, "train", 2)
    assert allocation.give_back(access, consent(access, *A1[:3])) == tuple(A1[:2])
    assert names(await give(access, "next", 2)) == A1[:2]


async def plan(access: Access, *failed: str, partial: bool = False) -> replacing.Plan:
    return await replacing.plan(access, [access.node(name) for name in failed], partial=partial)


async def test_a_failed_node_of_a_job_gives_its_place_to_a_spare_of_its_rack(access: Access) -> None:
    admit(access, *A1[:3], *A2[:1])
    admit(access, A1[5], A2[3], B1[0], pool=Pool.SPARE)
    await give(access, "train", 3)
    found = await plan(access, A1[1])
    assert (found.spares[A1[1]].name, found.names) == (A1[5], ("train",))
    replacing.carry_out(access, found, consent(access, A1[1]))
    assert list(access.store.allocations()) == [A1[0], A1[5], A1[2]]
    assert access.store.node(A1[1]).pool is Pool.QUARANTINE
    assert access.store.node(A1[1]).pool_why == "because"


async def test_a_failed_node_of_nobody_is_replaced_in_the_pool(access: Access) -> None:
    admit(access, A1[0])
    admit(access, A1[1], pool=Pool.SPARE)
    found = await plan(access, A1[0])
    assert found.names == ()
    replacing.carry_out(access, found, consent(access, A1[0]))
    assert access.store.node(A1[1]).pool is Pool.RELIABLE
    assert access.store.allocations() == {}


async def test_too_few_spares_change_nothing(access: Access) -> None:
    admit(access, *A1[:3])
    admit(access, A1[5], pool=Pool.SPARE)
    await give(access, "train", 3)
    before = access.store.events()
    with pytest.raises(NotEnough, match="not enough spare nodes, 2") as refused:
        await plan(access, A1[0], A1[1])
    assert refused.value.why == "1 of 1 spares are fit; nothing was changed"
    assert access.store.events() == before


async def test_partly_replaces_what_it_can_and_the_rest_leaves(access: Access) -> None:
    admit(access, *A1[:3])
    admit(access, A1[5], pool=Pool.SPARE)
    await give(access, "train", 3)
    found = await plan(access, A1[0], A1[1], partial=True)
    assert [node.name for node in found.without] == [A1[1]]
    replacing.carry_out(access, found, consent(access, A1[0], A1[1]))
    assert list(access.store.allocations()) == [A1[5], A1[2]]
    assert {access.store.node(name).pool for name in A1[:2]} == {Pool.QUARANTINE}


async def test_a_spare_without_a_fresh_yes_replaces_nobody(access: Access) -> None:
    admit(access, A1[0])
    admit(access, A1[5], pool=Pool.SPARE)
    access.store.record_verdict(A1[5], run=None, level="full", answer="no", reasons=["x"], evidence=None)
    with pytest.raises(NotEnough) as refused:
        await plan(access, A1[0])
    assert refused.value.why.startswith("0 of 1 spares")


async def test_a_failed_spare_does_not_replace_itself(access: Access) -> None:
    admit(access, A1[0])
    admit(access, A1[5], pool=Pool.SPARE)
    with pytest.raises(NotEnough):
        await plan(access, A1[0], A1[5])


async def test_replacing_twice_is_replacing_once(access: Access) -> None:
    admit(access, *A1[:2])
    admit(access, A1[5], A1[4], pool=Pool.SPARE)
    await give(access, "train", 2)
    replacing.carry_out(access, await plan(access, A1[0]), consent(access, A1[0]))
    again = await plan(access, A1[0])
    assert ([node.name for node in again.done], again.failed, again.names) == ([A1[0]], (), ("train",))


async def test_a_node_that_holds_no_place_is_left_alone(access: Access) -> None:
    hold(access, A1[0])
    found = await plan(access, A1[0], A1[1])
    assert [node.name for node in found.idle] == A1[:2]
    assert found.replacements() == ()


async def test_a_spare_that_is_taken_meanwhile_stops_all(access: Access) -> None:
    admit(access, *A1[:2])
    admit(access, A1[5], A1[4], pool=Pool.SPARE)
    found = await plan(access, A1[0], A1[1])
    hold(access, found.spares[A1[1]].name)
    with pytest.raises(NotFree):
        replacing.carry_out(access, found, consent(access, A1[0], A1[1]))
    assert access.store.node(A1[0]).pool is Pool.RELIABLE


async def test_a_consent_for_other_nodes_is_none(access: Access) -> None:
    admit(access, *A1[:2])
    admit(access, A1[5], pool=Pool.SPARE)
    with pytest.raises(ValueError, match="other nodes"):
        replacing.carry_out(access, await plan(access, A1[0]), consent(access, A1[1]))


async def test_the_relaunch_command_finds_the_hostfile_and_its_failure_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"
    await replacing.relaunch(f'echo "$MUSTER_ALLOCATION $MUSTER_HOSTFILE" > {out}', Path("/x/hosts"), "train")
    assert out.read_text() == "train /x/hosts\n"
    with pytest.raises(RelaunchFailed, match="exit 3 ended with 3"):
        await replacing.relaunch("exit 3", Path("/x/hosts"), "train")
