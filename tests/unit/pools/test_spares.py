"""The spares policy: at admission, and when it is put right later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inventory.model import Node, Pool
from provision.access import Access
from provision.errors import Refused
from provision.pools import spares
from tests.unit.pools.conftest import Make
from tests.unit.pools.making import admit, consent, hold, judge

A1 = [f"a1-n{number:02}" for number in range(1, 7)]


@given(st.floats(0.1, 0.2), st.integers(5, 200))
def test_the_share_is_kept_to_within_half_a_node(share: float, admitted: int) -> None:
    wanted = spares.wanted_spares(share, admitted)
    assert abs(wanted - share * admitted) <= 0.5 + 1e-9
    assert 0 <= wanted < admitted


def join(access: Access, node: Node) -> Pool:
    """Admit a node as the last stage does."""
    admit_to = spares.pool_for(access, node)
    admit(access, node.name, pool=admit_to)
    return admit_to


def test_spares_fill_up_to_the_share_as_a_racks_nodes_are_admitted(access: Access) -> None:
    joined = [join(access, access.node(name)) for name in A1]
    assert [str(pool) for pool in joined] == ["reliable", "reliable", "spare", *["reliable"] * 3]
    assert join(access, access.node("a2-n01")) is Pool.RELIABLE, "each rack has its own share"


def test_a_spare_that_fell_out_is_made_up_for_by_the_next_admission(access: Access) -> None:
    for name in A1[:5]:
        join(access, access.node(name))
    hold(access, A1[2])
    assert join(access, access.node(A1[5])) is Pool.SPARE


def test_a_node_that_serves_others_never_waits_as_a_spare(access: Access) -> None:
    for name in A1[:2]:
        join(access, access.node(name))
    assert join(access, access.node("a1-i01")) is Pool.RELIABLE


def test_other_hardware_in_the_rack_has_a_share_of_its_own(access: Access) -> None:
    for number in range(1, 6):
        join(access, access.node(f"b1-n{number:02}"))
    assert join(access, access.node("b1-s01")) is Pool.RELIABLE
    found = spares.shares(access.site.nodes, 0.2, access.store.nodes())
    shares = {(one.rack, one.profile): one for one in found}
    assert (shares["b1", "big"].spares, shares["b1", "big"].wanted) == (1, 1)
    assert (shares["b1", "small"].admitted, shares["b1", "small"].wanted) == (1, 0)


async def test_balancing_makes_the_least_healthy_idle_node_a_spare(access: Access) -> None:
    admit(access, *A1)
    judge(access, A1[1], "yes", "gpu.ecc: 2 corrected")
    judge(access, A1[4], "yes", "gpu.ecc: 1 corrected", "ib.counters: 1")
    access.store.allocate("train", [A1[4]], who="ana")
    busy = {A1[1]}

    async def in_use(_access: Access, node: Node) -> Refused | None:
        return Refused("in-use", node.name, "busy") if node.name in busy else None

    (move,) = await spares.plan(access, in_use)
    assert (move.node, move.to) == (A1[5], Pool.SPARE)
    assert move.why == "0 of 6 in a1 are spares, 1 are wanted"
    busy.clear()
    (move,) = await spares.plan(access, in_use)
    assert move.node == A1[1]


async def test_what_cannot_be_asked_is_not_made_a_spare(access: Access) -> None:
    admit(access, *A1, "a2-n01", "a2-n02", "a2-n03")  # the last three have no address
    assert await spares.plan(access) == ()


async def test_balancing_gives_the_healthiest_of_too_many_spares_to_the_pool(access: Access) -> None:
    admit(access, *A1[:3])
    admit(access, *A1[3:], pool=Pool.SPARE)
    judge(access, A1[3], "yes", "gpu.ecc: 2 corrected")
    moves = await spares.plan(access)
    assert [(move.node, move.to) for move in moves] == [(A1[4], Pool.RELIABLE), (A1[5], Pool.RELIABLE)]
    assert spares.carry_out(access, moves, consent(access, A1[4], A1[5])) == ()
    assert await spares.plan(access) == ()


async def test_what_was_taken_or_held_since_the_plan_is_left_alone(access: Access) -> None:
    admit(access, *A1[:2])
    admit(access, *A1[2:], pool=Pool.SPARE)
    moves = await spares.plan(access)
    assert [move.node for move in moves] == A1[2:5]
    access.store.set_pool(A1[2], Pool.QUARANTINE, by="ana", why="PSU smell")
    judge(access, A1[3], "no", "gpu.count: 7 of 8")
    assert spares.carry_out(access, moves, consent(access, *A1[2:5])) == (A1[2], A1[3])
    assert access.store.node(A1[2]).pool is Pool.QUARANTINE
    assert access.store.node(A1[4]).pool is Pool.RELIABLE


async def test_a_node_handed_out_since_the_plan_is_not_taken_away(access: Access) -> None:
    admit(access, *A1)
    moves = [spares.Move(A1[5], Pool.SPARE, "x"), spares.Move(A1[4], Pool.SPARE, "x")]
    access.store.allocate("train", [A1[5]], who="ana")
    assert spares.carry_out(access, moves, consent(access, *A1[4:])) == (A1[5],)
    assert [access.store.node(name).pool for name in A1[4:]] == [Pool.SPARE, Pool.RELIABLE]


def test_a_site_that_keeps_no_spares_has_none(make: Make) -> None:
    access = make()
    text = access.site.path / "site.yaml"
    text.write_text(text.read_text().replace("spare_share: 0.2", "spare_share: 0"))
    access = Access.open(access.settings)
    assert {join(access, access.node(name)) for name in A1} == {Pool.RELIABLE}
    access.store.close()
