"""A part of what `python -m benchmarks.mutation` does in full: no fault opens the gate."""

from __future__ import annotations

import random

import pytest

from benchmarks.mutation import all_faults, judge, same_again
from benchmarks.mutation_faults import CURATED
from benchmarks.recorded_nodes import load, names
from health.verdict import Answer

_SAMPLE = 40


@pytest.mark.parametrize("name", names())
def test_a_node_that_is_well_is_let_through(name: str) -> None:
    assert load(name).verdict().answer is Answer.YES


@pytest.mark.parametrize("name", names())
def test_no_fault_of_a_sample_is_let_through(name: str) -> None:
    node = load(name)
    faults = list(all_faults(node))
    chosen = random.Random(f"{name} 7").sample(faults, _SAMPLE)
    assert [fault.name for fault in chosen if judge(node, fault) is Answer.YES] == []


def test_there_are_faults_of_every_kind_and_enough_of_them() -> None:
    faults = list(all_faults(load("xe9680-h100")))
    assert len(faults) >= 300
    kinds = {fault.kind for fault in faults}
    assert {"xid", "sxid", "part", "document", "removed", "late", "hung", "refused", "cut"} <= kinds
    assert len({(fault.kind, fault.name) for fault in faults}) == len(faults)


def test_every_fault_of_a_part_is_one_of_some_node() -> None:
    given = {fault.name for name in names() for fault in all_faults(load(name)) if fault.kind == "part"}
    assert {name for name, _, _ in CURATED} == given


def test_a_verdict_is_the_same_again() -> None:
    assert same_again(load("lab"), 5)
