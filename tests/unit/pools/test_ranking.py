"""Healthiest first, with the reason said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from inventory.model import Stage
from provision.access import Access
from provision.pools.candidates import find, pasts
from provision.ranking import Past, judge, rank
from tests.unit.pools.making import admit, hold
from tests.unit.pools.making import judge as record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PASTS = st.builds(
    Past,
    st.sampled_from(["n1", "n2", "n3"]),
    failures=st.integers(0, 3),
    offences=st.integers(0, 3),
    warnings=st.integers(0, 5),
    last_yes=st.none() | st.integers(0, 90).map(lambda days: NOW - timedelta(days=days)),
)


def test_says_what_speaks_against_a_node() -> None:
    past = Past("n1", failures=2, offences=1, warnings=1, last_yes=NOW - timedelta(days=4))
    judged = judge(past, NOW)
    assert judged.demerits == 2 * 10 + 8 + 2 + 4
    assert not judged.clean
    assert (
        judged.reason == "2 failures in 30 days, 1 hold in 180 days, 1 warning at the last yes, yes 4 d ago"
    )


def test_time_alone_leaves_a_node_clean_but_behind_one_judged_today() -> None:
    old, new = (Past(name, last_yes=NOW - timedelta(days=days)) for name, days in (("old", 9), ("new", 0)))
    first, second = rank([old, new], NOW)
    assert [first.node, second.node] == ["new", "old"]
    assert second.clean
    assert (first.reason, second.reason) == ("yes today", "yes 9 d ago")


@given(PASTS, PASTS)
def test_who_is_worse_in_nothing_never_stands_behind(one: Past, other: Past) -> None:
    def marks(past: Past) -> tuple[int, int, int, float]:
        age = 99.0 if past.last_yes is None else (NOW - past.last_yes) / timedelta(days=1)
        return past.failures, past.offences, past.warnings, age

    if all(mine <= theirs for mine, theirs in zip(marks(one), marks(other), strict=True)):
        assert judge(one, NOW).demerits <= judge(other, NOW).demerits


@given(st.lists(PASTS))
def test_ranking_loses_nobody_and_is_the_same_each_time(given_pasts: list[Past]) -> None:
    ranked = rank(given_pasts, NOW)
    assert sorted(one.node for one in ranked) == sorted(past.node for past in given_pasts)
    assert ranked == rank(given_pasts, NOW)
    assert [one.demerits for one in ranked] == sorted(one.demerits for one in ranked)


def past_of(access: Access, name: str) -> Past:
    (found,) = pasts(access, [access.node(name)], datetime.now(UTC))
    return found


def test_counts_the_nodes_own_failures_only(access: Access) -> None:
    for code in ("gate-no", "maas-unreachable", "bug", "play-failed"):
        access.store.fail("a1-n01", Stage.VERIFIED, run=None, code=code, reason="x", next="x")
    assert past_of(access, "a1-n01").failures == 2


def test_counts_holds_by_serial_wherever_the_hardware_stood(access: Access) -> None:
    admit(access, "a1-n01", "a1-n02")
    access.store.set_pool("a2-n04", "quarantine", by="automation", why="Xid 79", serial="A1")  # type: ignore[arg-type]
    hold(access, "a1-n01")
    access.store.set_pool("a1-n01", "repair", by="ana", why="RMA")  # type: ignore[arg-type]
    assert past_of(access, "a1-n01").offences == 2, "a repair after quarantine is the same hold"
    assert past_of(access, "a2-n04").offences == 0, "the hardware that failed there stands elsewhere now"
    assert past_of(access, "a1-n02").offences == 0


def test_counts_the_remarks_of_a_yes_and_not_the_reasons_of_a_no(access: Access) -> None:
    admit(access, "a1-n01")
    record(access, "a1-n01", "yes", "gpu.ecc: 2 corrected", "ib.counters: 1 symbol error")
    assert past_of(access, "a1-n01").warnings == 2
    record(access, "a1-n01", "no", "gpu.count: 7 of 8")
    found = past_of(access, "a1-n01")
    assert (found.warnings, found.last_yes) == (0, None)


async def test_the_free_come_healthiest_first_and_the_others_with_why(access: Access) -> None:
    admit(access, "a1-n01", "a1-n02", "a1-n03", "a1-i01")
    record(access, "a1-n01", "yes", "gpu.ecc: 2 corrected")
    access.store.allocate("x", ["a1-n03"], who="ana")
    rack = [node for node in access.site.nodes if node.rack == "a1"]
    found = await find(access, rack)
    assert [one.name for one in found.free] == ["a1-n02", "a1-n01"]
    assert found.left_out["a1-n03"] == "it is allocated to x by ana"
    assert found.left_out["a1-i01"] == "it serves others: image_registry"
    assert found.why() == "3: it is in no pool, 1: it is allocated to x, 1: it serves others: image_registry"
