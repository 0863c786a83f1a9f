"""Which nodes a job gets, and which spare takes whose place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inventory.model import BmcAddress, Node
from provision.pools.candidates import Candidate
from provision.pools.choosing import Short, Wanted, choose, pair
from provision.ranking import Rank

PODS = {"r1": "p1", "r2": "p1", "r3": "p2", "r4": "p2"}


def node(name: str, rack: str, profile: str = "big") -> Node:
    return Node(name, rack, profile, BmcAddress("10.0.0.1", "bmc"))


def candidate(
    name: str, rack: str, demerits: int = 0, *, clean: bool = True, profile: str = "big"
) -> Candidate:
    return Candidate(node(name, rack, profile), PODS[rack], Rank(name, demerits, clean, ""))


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Some nodes, healthiest first, as the ranking gives them."""
    found = []
    for number in range(draw(st.integers(0, 14))):
        demerits = draw(st.integers(0, 40))
        rack, profile = draw(st.sampled_from(sorted(PODS))), draw(st.sampled_from(["big", "small"]))
        found.append(
            candidate(
                f"n{number:02}", rack, demerits, clean=demerits < 20 and draw(st.booleans()), profile=profile
            )
        )
    return sorted(found, key=lambda one: one.rank.demerits)


@given(candidates(), st.integers(1, 6), st.booleans(), st.booleans())
def test_gives_exactly_what_is_asked_of_one_profile_or_says_how_many_there_are(
    free: list[Candidate], count: int, same_pod: bool, healthiest: bool
) -> None:
    chosen = choose(free, Wanted(count, same_pod, healthiest))
    groups: dict[tuple[str, str], int] = {}
    for one in free:
        key = (one.node.profile, one.pod if same_pod else "")
        groups[key] = groups.get(key, 0) + 1
    if isinstance(chosen, Short):
        assert chosen.found == max(groups.values(), default=0) < count
        return
    assert len(chosen) == len({one.name for one in chosen}) == count
    assert set(chosen) <= set(free)
    assert len({one.node.profile for one in chosen}) == 1
    if same_pod:
        assert len({one.pod for one in chosen}) == 1


@given(candidates(), st.integers(1, 6))
def test_a_clean_node_is_left_over_only_where_no_other_was_taken(free: list[Candidate], count: int) -> None:
    chosen = choose(free, Wanted(count))
    if isinstance(chosen, Short) or all(one.rank.clean for one in chosen):
        return
    profile = chosen[0].node.profile
    assert all(one in chosen for one in free if one.rank.clean and one.node.profile == profile)


@given(candidates(), st.integers(1, 6))
def test_the_healthiest_are_the_healthiest(free: list[Candidate], count: int) -> None:
    alike = [one for one in free if one.node.profile == "big"]
    chosen = choose(alike, Wanted(count, healthiest=True))
    if isinstance(chosen, Short):
        return
    worst = max(one.rank.demerits for one in chosen)
    assert all(one.rank.demerits >= worst for one in alike if one not in chosen)


def test_a_rack_that_is_just_enough_is_taken_before_a_larger_one_is_broken() -> None:
    free = [candidate(f"a{n}", "r1") for n in range(4)] + [candidate(f"b{n}", "r2") for n in range(2)]
    chosen = choose(free, Wanted(2))
    assert not isinstance(chosen, Short)
    assert [one.node.rack for one in chosen] == ["r2", "r2"]


def test_racks_are_kept_together_where_one_is_not_enough() -> None:
    free = [candidate(f"{rack}-{n}", rack) for rack in ("r1", "r2", "r3") for n in range(3)]
    free += [candidate("r4-0", "r4"), candidate("r4-1", "r4")]
    chosen = choose(free, Wanted(5))
    assert not isinstance(chosen, Short)
    assert sorted(one.node.rack for one in chosen) == ["r1", "r1", "r1", "r4", "r4"]


def test_a_pod_that_would_need_a_spoiled_node_comes_after_one_that_does_not() -> None:
    free = [candidate("a", "r1"), candidate("b", "r1"), candidate("c", "r3"), candidate("d", "r4")]
    free += [candidate("e", "r2", 20, clean=False)]
    chosen = choose(free, Wanted(3, same_pod=True))
    assert not isinstance(chosen, Short)
    assert {one.name for one in chosen} == {"a", "b", "e"}
    less = choose([one for one in free if one.name != "b"], Wanted(2, same_pod=True))
    assert not isinstance(less, Short)
    assert {one.name for one in less} == {"c", "d"}


def test_a_spare_of_the_same_rack_comes_first_then_of_the_pod_then_any() -> None:
    spares = [candidate("far", "r3"), candidate("pod", "r2"), candidate("rack", "r1", 3)]
    failed = [node("x", "r1")]
    for expected in ("rack", "pod", "far"):
        given_spares = pair(failed, spares, PODS)
        assert given_spares["x"].name == expected
        spares = [one for one in spares if one.name != expected]
    assert pair(failed, spares, PODS) == {}


def test_nobody_takes_the_neighbour_that_another_needs() -> None:
    spares = [candidate("s1", "r1"), candidate("s2", "r2")]
    failed = [node("far", "r4"), node("y", "r2"), node("x", "r1")]
    given_spares = pair(failed, spares, PODS)
    assert {name: one.name for name, one in given_spares.items()} == {"x": "s1", "y": "s2"}


def test_a_clean_spare_of_the_pod_comes_before_a_spoiled_one_of_the_rack() -> None:
    spares = [candidate("clean", "r2"), candidate("spoiled", "r1", 20, clean=False)]
    assert pair([node("x", "r1")], spares, PODS)["x"].name == "clean"


def test_a_spare_of_other_hardware_is_none() -> None:
    assert pair([node("x", "r1")], [candidate("s", "r1", profile="small")], PODS) == {}


@given(candidates(), st.lists(st.sampled_from(sorted(PODS)), max_size=5))
def test_no_spare_is_given_twice_and_none_is_kept_back(free: list[Candidate], racks: list[str]) -> None:
    failed = [node(f"f{number}", rack) for number, rack in enumerate(racks)]
    found = pair(failed, free, PODS)
    names = [one.name for one in found.values()]
    assert len(names) == len(set(names))
    assert len(found) == min(len(failed), sum(one.node.profile == "big" for one in free))
