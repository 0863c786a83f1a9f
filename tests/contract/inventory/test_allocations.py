"""Handing out, giving back, replacing, and the breaker: what the store promises on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import inventory
from inventory import schema
from inventory.backup import restore
from inventory.database import open_database
from inventory.errors import BreakerOpen, NotFree
from inventory.model import Pool, Stage
from inventory.records import AUTOMATION, EventKind, Replacement
from inventory.store import Store
from tests.contract.inventory.conftest import Clock


def admit(store: Store, *names: str, pool: Pool = Pool.RELIABLE) -> None:
    """Bring nodes into an admitted pool by the only way there is."""
    for name in names:
        store.reach(name, Stage.VERIFIED, run=None)
        store.record_verdict(name, run=None, level="full", answer="yes", reasons=[], evidence=None)
        store.set_pool(name, pool, by=AUTOMATION, why="gate")


def hold(store: Store, name: str) -> None:
    """Quarantine a node as automation does."""
    store.set_pool(name, Pool.QUARANTINE, by=AUTOMATION, why="Xid 79")


def test_what_is_handed_out_is_kept_with_who_why_and_in_order(store: Store, clock: Clock) -> None:
    admit(store, "n1", "n2")
    store.allocate("train", ["n2", "n1"], who="ana", why="pretraining")
    found = store.allocations()
    assert list(found) == ["n2", "n1"]
    assert {(one.name, one.who, one.why) for one in found.values()} == {("train", "ana", "pretraining")}
    assert clock.now - found["n1"].since < timedelta(minutes=1)
    events = store.events(kinds=[EventKind.ALLOCATED])
    assert [(event.node, event.actor, event.message) for event in events] == [
        ("n2", "ana", "allocated to train for ana: pretraining"),
        ("n1", "ana", "allocated to train for ana: pretraining"),
    ]


def test_nothing_of_a_hand_out_is_kept_where_one_node_is_taken(store: Store) -> None:
    admit(store, "n1", "n2")
    store.allocate("a", ["n1"], who="ana")
    with pytest.raises(NotFree, match="n1: cannot be handed out: it is allocated to a by ana"):
        store.allocate("b", ["n2", "n1"], who="tom")
    assert [one.name for one in store.allocations().values()] == ["a"]


def test_a_node_named_twice_is_not_handed_out_twice(store: Store) -> None:
    admit(store, "n1")
    with pytest.raises(NotFree):
        store.allocate("a", ["n1", "n1"], who="ana")
    assert store.allocations() == {}


def test_the_database_itself_refuses_a_second_allocation(url: str, store: Store) -> None:
    admit(store, "n1")
    store.allocate("a", ["n1"], who="ana")
    database = open_database(url, busy_seconds=1)
    row = {"node": "n1", "name": "b", "place": 0, "who": "tom", "since": store.allocations()["n1"].since}
    with pytest.raises(sa.exc.IntegrityError), database.engine.begin() as connection:
        connection.execute(schema.allocation.insert(), row)
    database.close()


def test_two_at_once_never_get_the_same_node(url: str) -> None:
    names = [f"n{number}" for number in range(8)]
    with Store.open(url) as store:
        admit(store, *names)

    def take(who: str) -> None:
        with Store.open(url) as own:
            for name in names:
                try:
                    own.allocate(who, [name], who=who)
                except NotFree:
                    continue

    threads = [threading.Thread(target=take, args=(who,)) for who in ("ana", "tom")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Store.open(url) as store:
        assert sorted(store.allocations()) == names
        assert len(store.events(kinds=[EventKind.ALLOCATED])) == len(names)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("unknown", "it is in no pool"),
        ("spare", "it is in spare, not reliable"),
        ("held", "it is in quarantine, not reliable"),
        ("busy", "a run brings it to configured"),
        ("no", "the gate's last answer is no"),
        ("failed", "the gate has not judged it since it failed at verified"),
    ],
)
def test_only_a_proven_idle_reliable_node_is_handed_out(store: Store, state: str, reason: str) -> None:
    if state != "unknown":
        admit(store, "n1", pool=Pool.SPARE if state == "spare" else Pool.RELIABLE)
    if state == "held":
        hold(store, "n1")
    if state == "busy":
        store.begin("n1", Stage.CONFIGURED, run=None)
    if state == "no":
        store.record_verdict("n1", run=None, level="full", answer="no", reasons=["x"], evidence=None)
    if state == "failed":
        store.fail("n1", Stage.VERIFIED, run=None, code="gate-no", reason="x", next="x")
    with pytest.raises(NotFree) as refused:
        store.allocate("a", ["n1"], who="ana")
    assert refused.value.reason == reason


def test_what_is_given_back_is_free_again_and_giving_twice_is_nothing(store: Store) -> None:
    admit(store, "n1")
    store.allocate("a", ["n1"], who="ana")
    assert store.give_back(["n1", "n2"], by="ana", why="done") == ("n1",)
    assert store.give_back(["n1"], by="ana") == ()
    assert store.events(kinds=[EventKind.RETURNED])[-1].message == "returned from a: done"
    store.allocate("b", ["n1"], who="tom")


def test_a_spare_takes_the_failed_nodes_place_in_pool_and_hostfile(store: Store) -> None:
    admit(store, "n1", "n2", "n3")
    admit(store, "s1", pool=Pool.SPARE)
    store.allocate("a", ["n1", "n2", "n3"], who="ana", why="pretraining")
    store.replace([Replacement("n2", "s1", serial="X2")], by="tom", why="Xid 79")
    found = store.allocations()
    assert list(found) == ["n1", "s1", "n3"]
    assert (found["s1"].who, found["s1"].why, found["s1"].instead_of) == ("ana", "pretraining", "n2")
    states = store.nodes()
    assert (states["n2"].pool, states["n2"].pool_by, states["n2"].pool_why) == (
        Pool.QUARANTINE,
        "tom",
        "Xid 79",
    )
    assert states["s1"].pool is Pool.RELIABLE
    assert store.events(node="n2", kinds=[EventKind.POOL])[-1].data["serial"] == "X2"


def test_only_a_free_node_changes_between_reliable_and_spare(store: Store) -> None:
    admit(store, "n1", "n2")
    store.allocate("a", ["n2"], who="ana")
    store.shift("n1", Pool.SPARE, by="tom", why="too few")
    assert store.node("n1").pool is Pool.SPARE
    for node, to in (("n1", Pool.SPARE), ("n2", Pool.SPARE), ("n3", Pool.RELIABLE)):
        with pytest.raises(NotFree):
            store.shift(node, to, by="tom", why="too few")
    store.shift("n1", Pool.RELIABLE, by="tom", why="too many")
    assert store.node("n1").pool is Pool.RELIABLE


def test_a_replacement_is_whole_or_not_at_all(store: Store) -> None:
    admit(store, "n1", "n2")
    admit(store, "s1", pool=Pool.SPARE)
    store.allocate("a", ["n1", "n2"], who="ana")
    with pytest.raises(NotFree, match="s1: cannot be handed out"):
        store.replace([Replacement("n1", "s1"), Replacement("n2", "s1")], by="tom", why="Xid 79")
    assert list(store.allocations()) == ["n1", "n2"]
    assert store.node("n1").pool is Pool.RELIABLE
    assert store.node("s1").pool is Pool.SPARE


def test_replacing_leaves_a_humans_hold_and_a_repair_as_they_are(store: Store) -> None:
    admit(store, "n1", "n2")
    admit(store, "s1", "s2", pool=Pool.SPARE)
    store.allocate("a", ["n1", "n2"], who="ana")
    store.set_pool("n1", Pool.QUARANTINE, by="marta", why="PSU smell")
    store.set_pool("n2", Pool.REPAIR, by=AUTOMATION, why="RMA")
    store.replace([Replacement("n1", "s1"), Replacement("n2", "s2")], by="tom", why="down")
    first, second = store.node("n1"), store.node("n2")
    assert (first.pool_by, first.pool_why) == ("marta", "PSU smell")
    assert second.pool is Pool.REPAIR
    assert list(store.allocations()) == ["s1", "s2"]


def test_the_breaker_lets_a_tenth_leave_and_two_of_a_small_pool_and_no_more(store: Store) -> None:
    names = [f"n{number:02}" for number in range(30)]
    admit(store, *names)
    for name in names[:3]:
        hold(store, name)
    assert store.breaker().tripped_at is None
    hold(store, names[3])
    tripped = store.breaker()
    assert tripped.tripped_at is not None
    assert tripped.left == tuple(names[:4])
    assert "4 of 30 reliable nodes left within an hour" in tripped.why
    with pytest.raises(BreakerOpen, match="n04: automatic quarantine is stopped: 4 of 30"):
        hold(store, names[4])
    assert store.node(names[4]).pool is Pool.RELIABLE


def test_the_breaker_stops_automation_only_and_only_for_reliable_nodes(store: Store) -> None:
    admit(store, "n1", "n2", "n3", "n4")
    admit(store, "s1", pool=Pool.SPARE)
    hold(store, "n1")
    hold(store, "n2")
    hold(store, "s1")
    hold(store, "n9")  # in no pool
    store.set_pool("n3", Pool.QUARANTINE, by="ana", why="PSU smell")
    with pytest.raises(BreakerOpen):
        hold(store, "n4")
    store.reach("n4", Stage.DEPLOYED, run=None)
    assert store.node("n4").pool is None, "no breaker keeps a node that is not what was judged"


def test_what_a_human_moves_does_not_count(store: Store) -> None:
    admit(store, "n1", "n2", "n3")
    for name in ("n1", "n2"):
        store.set_pool(name, Pool.QUARANTINE, by="ana", why="move")
    assert store.breaker().left == ()
    hold(store, "n3")
    assert store.breaker().tripped_at is None


def test_the_breaker_stays_open_until_a_human_resumes_it_and_then_forgets(store: Store, clock: Clock) -> None:
    admit(store, "n1", "n2", "n3", "n4")
    hold(store, "n1")
    hold(store, "n2")
    clock.now += timedelta(days=2)
    assert store.breaker().tripped_at is not None
    with pytest.raises(ValueError, match="automation cannot"):
        store.resume_breaker(by=AUTOMATION, why="it looks fine")
    assert store.resume_breaker(by="ana", why="switch replaced").tripped_at is not None
    assert store.breaker().left == ()
    hold(store, "n3")
    assert store.breaker().tripped_at is None


def test_those_that_left_more_than_an_hour_ago_do_not_count(store: Store, clock: Clock) -> None:
    admit(store, "n1", "n2", "n3")
    hold(store, "n1")
    clock.now += timedelta(minutes=61)
    hold(store, "n2")
    assert store.breaker().left == ("n2",)
    assert store.breaker().tripped_at is None


def test_a_backup_takes_allocations_along(store: Store, fresh: Callable[[], str], tmp_path: Path) -> None:
    admit(store, "n1")
    store.allocate("a", ["n1"], who="ana")
    store.backup(tmp_path / "backup.sqlite")
    other = fresh()
    restore(tmp_path / "backup.sqlite", other)
    with Store.open(other) as restored:
        assert restored.allocations() == store.allocations()


def test_a_store_from_before_allocations_is_taken_along(url: str) -> None:
    database = open_database(url, busy_seconds=1)
    with database.engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(inventory.__file__).with_name("migrations")))
        config.attributes["connection"] = connection
        connection.exec_driver_sql("DROP TABLE allocation")
        connection.exec_driver_sql("DROP INDEX ix_event_kind")
        command.stamp(config, "0001")
    database.close()
    with Store.open(url) as store:
        admit(store, "n1")
        store.allocate("a", ["n1"], who="ana")
        assert list(store.allocations()) == ["n1"]
