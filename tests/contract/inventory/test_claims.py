"""Runs hold their nodes: one begins, the other is told; what a run leaves behind is cleared."""

from __future__ import annotations

import threading

from inventory.claims import Taken
from inventory.model import Stage
from inventory.records import RunState
from inventory.store import Store


def claim(store: Store, id: str, *nodes: str, new: bool = True) -> Taken | None:
    return store.claim_run(id, kind="bringup", nodes=nodes, who="ana", new=new)


def test_a_node_in_a_run_under_way_cannot_join_another(store: Store) -> None:
    assert claim(store, "b-1", "n1", "n2") is None
    assert claim(store, "b-2", "n2", "n3") == Taken("b-1", ("n2",))
    assert [run.id for run in store.going()] == ["b-1"]
    assert claim(store, "b-3", "n3") is None
    store.end_run("b-1", RunState.DONE)
    assert claim(store, "b-2", "n2") is None


def test_an_id_is_given_to_one_run_only(store: Store) -> None:
    assert claim(store, "b-1", "n1") is None
    assert claim(store, "b-1", "n9") == Taken("b-1", ())
    store.end_run("b-1", RunState.DONE)
    assert claim(store, "b-1", "n9") == Taken("b-1", ())
    assert store.run_nodes("b-1") == ("n1",)


def test_a_run_is_resumed_by_one_only(store: Store) -> None:
    assert claim(store, "b-1", "n1") is None
    assert claim(store, "b-1", "n1", new=False) == Taken("b-1", ())
    store.end_run("b-1", RunState.FAILED)
    assert claim(store, "b-1", "n1", new=False) is None
    assert claim(store, "b-1", "n1", new=False) == Taken("b-1", ())


def test_of_many_at_the_same_moment_one_begins(url: str) -> None:
    with Store.open(url) as first, Store.open(url) as second:
        told: list[Taken | None] = []
        together = threading.Barrier(8)

        def ask(store: Store, number: int) -> None:
            together.wait()
            told.append(claim(store, f"b-{number}", "n1", f"m{number}"))

        threads = [threading.Thread(target=ask, args=((first, second)[n % 2], n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told.count(None) == 1
        going = [run.id for run in first.going()]
        assert len(going) == 1
        assert {found for found in told if found} == {Taken(going[0], ("n1",))}


def test_a_run_ends_once_and_stays_as_it_ended(store: Store) -> None:
    claim(store, "b-1", "n1")
    assert store.end_run("b-1", RunState.CANCELLED)
    assert not store.end_run("b-1", RunState.FAILED)
    assert store.run("b-1").state is RunState.CANCELLED
    assert [event.message for event in store.events(run="b-1", kinds=["run.ended"])] == ["run cancelled"]


def test_a_halted_run_is_at_work_on_nothing(store: Store) -> None:
    claim(store, "b-1", "n1", "n2", "n3")
    claim(store, "b-2", "n4")
    for node, run in (("n1", "b-1"), ("n2", "b-1"), ("n4", "b-2")):
        store.begin(node, Stage.REACHABLE, run=run)
    assert store.halt("b-1", ["n1", "n4"]) == ("n1",)
    assert store.node("n2").in_stage is Stage.REACHABLE
    assert store.halt("b-1") == ("n2",)
    assert store.node("n2").in_stage is None
    assert store.node("n2").in_stage_at is None
    assert store.run_progress("b-1")["n2"].in_stage is None
    assert store.node("n4").in_stage is Stage.REACHABLE
    assert store.halt("b-1") == ()
