"""Outliers, repeat offenders and flaps, as values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from provision import fleet

START = datetime(2026, 11, 1, tzinfo=UTC)


def event(number: int, kind: str, node: str, **data: object) -> fleet.Event:
    when = START + timedelta(hours=number)
    return fleet.Event(number, when, kind, "automation", "here", "", node=node, data=data)


def hold(number: int, node: str, why: str, **data: object) -> fleet.Event:
    return event(number, "pool", node, **{"from": "reliable", "to": "quarantine", "why": why, **data})


def test_what_is_far_from_its_like_is_shown_furthest_first() -> None:
    values = {f"n{number}": {"gemm": 700.0 + number, "copy": 50.0} for number in range(8)}
    values["slow"] = {"gemm": 520.0, "copy": 48.0}
    found = fleet.outliers("p", values)
    assert [(one.node, one.metric, one.nodes) for one in found] == [("slow", "gemm", 9), ("slow", "copy", 9)]
    assert round(found[0].percent) == -26


def test_nodes_that_are_all_alike_have_no_outlier_for_a_rounding_error() -> None:
    values = {f"n{number}": {"gemm": 700.0} for number in range(8)}
    assert fleet.outliers("p", {**values, "n8": {"gemm": 700.1}}) == ()


def test_of_too_few_nodes_none_is_an_outlier() -> None:
    values = {f"n{number}": {"gemm": 700.0} for number in range(fleet.ENOUGH - 2)}
    assert fleet.outliers("p", {**values, "slow": {"gemm": 100.0}}) == ()


def test_hardware_is_followed_by_its_serial_from_name_to_name() -> None:
    moves = [
        hold(1, "r1-n01", "gate: no: gpu.ecc", serial="S1"),
        hold(2, "r1-n07", "gate: no: gpu.ecc", serial="S1"),
        hold(3, "r1-n01", "gate: no: ib.ports", serial="S9"),
        hold(4, "r1-n02", "by hand"),
    ]
    (found,) = fleet.offenders(moves)
    assert (found.serial, found.nodes, found.holds) == ("S1", ("r1-n01", "r1-n07"), 2)
    assert found.reasons == ("gate: no: gpu.ecc",)
    assert [one.serial for one in fleet.offenders(moves, least=1)] == ["S1", "S9", "r1-n02"]


def test_from_quarantine_to_repair_is_no_second_offence() -> None:
    moved = event(2, "pool", "r1-n01", **{"from": "quarantine", "to": "repair", "serial": "S1"})
    assert fleet.offenders([hold(1, "r1-n01", "x", serial="S1"), moved]) == ()


def test_a_node_whose_answers_change_is_a_flap_and_unknown_is_no_change() -> None:
    answers = ["yes", "yes", "unknown", "yes", "no", "unknown", "yes", "no"]
    events = [event(n, "verdict", "r1-n01", answer=answer) for n, answer in enumerate(answers)]
    events += [
        event(n, "verdict", "r1-n02", answer=answer) for n, answer in enumerate(["yes", "unknown"] * 4)
    ]
    (found,) = fleet.flaps(events)
    assert (found.node, found.answers, found.path) == ("r1-n01", 3, "yes x3 no yes no")


def test_leaving_and_joining_the_pool_is_a_flap_and_shifting_within_is_not() -> None:
    between = [("reliable", "quarantine"), ("quarantine", None), (None, "reliable"), ("reliable", "spare")]
    events = [event(n, "pool", "r1-n01", **{"from": a, "to": b}) for n, (a, b) in enumerate(between)]
    assert fleet.flaps(events) == ()
    (found,) = fleet.flaps(events, least=2)
    assert found.moves == 2
