"""Causes: each is recognised in a recording of its own, and a healthy boot has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmc.console.causes import Cause, Watch, rules
from bmc.console.plain import Plain

FIXTURES = Path(__file__).parent / "fixtures" / "console"
CASES = sorted(FIXTURES.glob("*.log"))


def watched(data: bytes, size: int) -> Cause | None:
    """Feed `data` in pieces of `size`, one a second, as a console sends it."""
    plain, watch = Plain(), Watch()
    data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    for at in range(0, len(data), size):
        watch.feed(1000.0 + at, plain.feed(data[at : at + size]))
    return watch.cause()


@pytest.mark.parametrize("size", [1, 100, 100_000])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_names_what_stopped_the_boot(path: Path, size: int) -> None:
    cause = watched(path.read_bytes(), size)
    wanted = path.name.split(".")[0]
    assert (cause.id if cause else "healthy") == wanted


@pytest.mark.parametrize("batch", [1, 3, 1000])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_batch_says_the_same_as_its_pieces(path: Path, batch: int) -> None:
    data, plain, watch = path.read_bytes(), Plain(), Watch()
    pieces = [(float(at), plain.feed(data[at : at + 10])) for at in range(0, len(data), 10)]
    for at in range(0, len(pieces), batch):
        watch.feed_all(pieces[at : at + batch])
    one_by_one = Watch()
    for when, text in pieces:
        one_by_one.feed(when, text)
    assert watch.cause() == one_by_one.cause()


def test_every_cause_has_a_recording() -> None:
    assert {rule.id for rule in rules()} == {path.name.split(".")[0] for path in CASES} - {"healthy"}


def test_rows_of_one_cause_agree_on_what_they_say() -> None:
    said = {(rule.id, rule.title, rule.advice, rule.rank) for rule in rules()}
    assert len(said) == len({rule.id for rule in rules()})


def test_says_the_first_line_its_time_and_how_often() -> None:
    watch = Watch()
    watch.feed(10.0, b"quiet\n")
    watch.feed(11.0, b"[ 1] Kernel panic - not syncing: one\n")
    watch.feed(12.0, b"[ 2] Kernel panic - not syncing: two\n")
    cause = watch.cause()
    assert cause is not None
    assert (cause.line, cause.time, cause.count) == ("[ 1] Kernel panic - not syncing: one", 11.0, 2)


def test_a_boot_that_gets_past_a_problem_takes_it_back() -> None:
    watch = Watch()
    watch.feed(1.0, b"PXE-E51: No DHCP or proxyDHCP offers were received.\n")
    assert watch.cause() is not None
    watch.feed(2.0, b"n1 login: ")
    assert watch.cause() is None


def test_a_line_without_end_does_not_grow_for_ever() -> None:
    watch = Watch()
    for _ in range(100):
        watch.feed(1.0, b"x" * 10_000)
    assert len(watch._line) <= 4096
