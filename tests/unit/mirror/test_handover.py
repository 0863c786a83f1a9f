"""What nginx writes counts as promised from the moment it was let in, and no longer than it is under way."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from provision.mirror.connections import Connection
from provision.mirror.handover import HandOver
from provision.mirror.promise import Promise
from provision.mirror.refusals import Refusal, Why

HERE, THERE = Connection("10.0.0.1", 4000, 80), Connection("10.0.0.2", 4000, 80)
AN_HOUR_S = 3600.0


def promise(length: int, by: str = "ana") -> Promise:
    return Promise(length, "ab" * 32, "f", replace=False, by=by, created=1.0)


class Clients:
    """Who is no longer there."""

    def __init__(self) -> None:
        self.gone: set[Connection] = set()

    def __call__(self, asked: Collection[Connection]) -> Collection[Connection]:
        return self.gone & set(asked)


@pytest.fixture
def clients() -> Clients:
    return Clients()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "incoming"
    made.mkdir()
    return made


@pytest.fixture
def handover(folder: Path, clients: Clients) -> Iterator[HandOver]:
    made = HandOver(folder, clients, clock=lambda: time.time() + AN_HOUR_S)
    yield made
    made.close()


def test_what_is_written_has_its_room_already(handover: HandOver, folder: Path) -> None:
    handover.admit("1", promise(100), HERE)
    handover.admit("2", promise(50), THERE)
    assert handover.to_come() == 150
    with (folder / "0001").open("wb", buffering=0) as file:
        file.write(b"x" * 60)
        assert handover.to_come() == 90
    handover.forget("1")
    handover.forget("2")
    assert handover.to_come() == 0


def test_what_nobody_writes_any_longer_is_removed_and_counts_for_nothing(
    handover: HandOver, folder: Path
) -> None:
    handover.admit("1", promise(100), HERE)
    (folder / "0001").write_bytes(b"left by an nginx that was killed")
    with (folder / "0002").open("wb", buffering=0) as file:
        file.write(b"x" * 10)
        assert handover.to_come() == 90
    assert [path.name for path in folder.iterdir()] == ["0002"]


def test_left_overs_go_when_the_service_starts(folder: Path) -> None:
    (folder / "0001").write_bytes(b"x")
    HandOver(folder).close()
    assert list(folder.iterdir()) == []


def test_a_client_that_went_away_is_promised_nothing(handover: HandOver, clients: Clients) -> None:
    handover.admit("1", promise(100), HERE)
    handover.admit("2", promise(50), THERE)
    assert not handover.forget_gone()
    clients.gone = {HERE}
    assert handover.forget_gone()
    assert handover.to_come() == 50


def test_a_connection_carries_one_put_at_a_time(handover: HandOver) -> None:
    handover.admit("1", promise(100), HERE)
    handover.admit("2", promise(50), HERE)
    assert handover.to_come() == 50


def test_a_body_gets_a_name_of_ours_and_is_promised_no_more(handover: HandOver, folder: Path) -> None:
    handover.admit("1", promise(4), HERE)
    (folder / "0001").write_bytes(b"body")
    inode = handover.take("1", promise(4), folder / "0001", folder.parent / "ours")
    assert inode == (folder.parent / "ours").stat().st_ino
    assert (handover.to_come(), handover.promises()) == (0, [promise(4)])
    (folder / "0001").unlink()
    assert (folder.parent / "ours").read_bytes() == b"body"


def test_a_put_that_was_not_let_in_or_promises_another_thing_is_not_taken(
    handover: HandOver, folder: Path
) -> None:
    handover.admit("1", promise(4), HERE)
    (folder / "0001").write_bytes(b"body")
    for ticket, told in (("2", promise(4)), ("1", promise(4, "ben")), ("1", promise(5))):
        with pytest.raises(Refusal) as refused:
            handover.take(ticket, told, folder / "0001", folder.parent / "ours")
        assert refused.value.why is Why.AGAIN
    assert not (folder.parent / "ours").exists()


@pytest.mark.parametrize("body", ["../outside", "/etc/hostname", "link", "0002", "sub/0001", "0003"])
def test_only_a_whole_plain_file_of_the_folder_itself_is_taken(
    handover: HandOver, folder: Path, body: str
) -> None:
    handover.admit("1", promise(4), HERE)
    (folder.parent / "outside").write_bytes(b"body")
    (folder / "link").write_bytes(b"body")
    (folder / "0002").symlink_to("../outside")
    (folder / "sub").mkdir()
    (folder / "sub" / "0001").write_bytes(b"body")
    (folder / "0003").write_bytes(b"bod")
    with pytest.raises(Refusal):
        handover.take("1", promise(4), folder / body, folder.parent / "ours")


def test_a_body_that_has_gone_is_asked_for_again(handover: HandOver, folder: Path) -> None:
    handover.admit("1", promise(4), HERE)
    with pytest.raises(Refusal) as refused:
        handover.take("1", promise(4), folder / "0001", folder.parent / "ours")
    assert refused.value.why is Why.AGAIN
