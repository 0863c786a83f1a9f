"""Boots, what they taught and cards outlive a command; only reliable nodes teach; decisions hold for all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.recorded_nodes import load
from health import boots
from health.bootlog.anomalies import find_anomalies
from health.bootlog.boot import boot_from
from health.boots import Card, Cohort, Decision, SavedBoot
from health.errors import Unreadable
from provision.errors import UnknownCard
from provision.triage import Shelf

NODE = load("xe9680-h100")
ODD = "something no node has ever said"


def saved(node: str, boot_id: str = "b1", at: float = 1.0, *extra: str) -> SavedBoot:
    found = boots.saved_boot(NODE.evidence(), NODE.profile, node, at)
    assert found is not None
    return replace(found, boot_id=boot_id, lines=(*found.lines, *extra))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def taught(shelf: Shelf, count: int = 4, each: int = 3) -> Cohort:
    """Let so many nodes teach, each by so many boots."""
    for number in range(count):
        for boot in range(each):
            shelf.keep(saved(f"n{number}", f"b{boot}", float(boot)))
    (model,) = shelf.learn(frozenset(f"n{number}" for number in range(count)))
    return model.cohort


def odd_card(shelf: Shelf, cohort: Cohort) -> Card:
    model = shelf.model(cohort)
    assert model is not None
    seen = boot_from("n9", saved("n9", "b", 1.0, ODD).lines)
    (card,) = shelf.note("n9", find_anomalies(model, seen), 10.0)
    return card


def test_nothing_is_learned_of_a_node_that_is_not_reliable(shelf: Shelf) -> None:
    for number in range(4):
        shelf.keep(saved(f"n{number}"))
    shelf.keep(saved("sick", "b", 1.0, ODD))
    (model,) = shelf.learn(frozenset({"n0", "n1"}))
    assert (model.nodes, model.boots) == (2, 2)
    assert not any("ever said" in template for template in model.templates)
    assert shelf.learn(frozenset()) == ()


def test_a_node_that_becomes_reliable_teaches_then(shelf: Shelf) -> None:
    shelf.keep(saved("n0"))
    shelf.keep(saved("n1"))
    assert shelf.learn(frozenset({"n0"}))[0].nodes == 1
    assert shelf.learn(frozenset({"n0"})) == ()
    assert shelf.learn(frozenset({"n0", "n1"}))[0].nodes == 2


def test_what_was_learned_and_noted_is_there_for_the_next_command(shelf: Shelf) -> None:
    cohort = taught(shelf)
    card = odd_card(shelf, cohort)
    later = Shelf(shelf.folder)
    assert later.card(card.id) == card
    assert later.model(cohort) == shelf.model(cohort)
    assert (card.oddity, card.nodes, card.line) == ("novel", ("n9",), ODD)


def test_a_card_noted_again_is_the_same_card(shelf: Shelf) -> None:
    cohort = taught(shelf)
    card = odd_card(shelf, cohort)
    model = shelf.model(cohort)
    assert model is not None
    seen = boot_from("n8", saved("n8", "b", 1.0, ODD).lines)
    assert shelf.note("n8", find_anomalies(model, seen), 20.0) == ()
    assert shelf.card(card.id).nodes == ("n9", "n8")
    assert shelf.card(card.id).last_seen == 20.0


@pytest.mark.parametrize(
    ("decision", "until"), [(Decision.PROMOTED, 0.0), (Decision.DENIED, 0.0), (Decision.DEFERRED, 99.0)]
)
def test_a_decision_holds_for_the_cohort_and_outlives_the_command(
    shelf: Shelf, decision: Decision, until: float
) -> None:
    card = odd_card(shelf, taught(shelf))
    shelf.decide(card.id[:5], decision, by="marta", at=20.0, why="seen by the vendor", until=until)
    later = Shelf(shelf.folder)
    assert later.decisions().by_card == {card.id: decision}
    assert later.card(card.id).by == "marta"
    assert later.card(card.id).open_at(50.0) is False
    assert later.card(card.id).open_at(100.0) is (decision is Decision.DEFERRED)


def test_what_is_denied_is_unlearned(shelf: Shelf) -> None:
    for number in range(4):
        shelf.keep(saved(f"n{number}", "b1", 1.0))
        shelf.keep(saved(f"n{number}", "b2", 2.0))
    everyone = frozenset(f"n{number}" for number in range(5))
    (before,) = shelf.learn(everyone)
    for number in range(4):
        shelf.keep(saved(f"n{number}", "b3", 3.0))
    shelf.keep(saved("n4", "b4", 4.0, ODD))
    card = odd_card(shelf, before.cohort)
    shelf.decide(card.id, Decision.DENIED, by="marta", at=5.0, why="a bad cable", until=0.0)
    (after,) = shelf.learn(everyone)
    assert card.template not in after.templates
    assert after.boots == 12


def test_an_unknown_card_is_answered_with_the_nearest(shelf: Shelf) -> None:
    card = odd_card(shelf, taught(shelf))
    with pytest.raises(UnknownCard) as caught:
        shelf.card(card.id[:-1] + "x")
    assert caught.value.nearest == card.id
    with pytest.raises(UnknownCard):
        shelf.card("")


def test_a_damaged_card_is_named_not_dropped(shelf: Shelf) -> None:
    card = odd_card(shelf, taught(shelf))
    path = shelf.folder / "cards" / f"{card.id}.json"
    path.unlink()
    path.write_text('{"schema": 1')
    with pytest.raises(Unreadable):
        shelf.cards()


def test_only_so_many_boots_of_a_node_are_kept(shelf: Shelf) -> None:
    for number in range(boots.BOOTS_A_NODE + 3):
        shelf.keep(saved("n0", f"b{number}", float(number)))
    shelf.learn(frozenset({"n0"}))
    kept = sorted(path.name for path in shelf.folder.glob("cohorts/*/boots/*.gz"))
    assert kept == [f"n0.b{number}.gz" for number in range(3, 3 + boots.BOOTS_A_NODE)]
