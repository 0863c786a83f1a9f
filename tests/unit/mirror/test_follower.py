"""A file that grows is hashed as it grows; what was not seen whole is never taken for it."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.mirror.follower import BLOCK, Followed, Follower


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    made = Follower(tmp_path)
    yield made
    made.close()


def all_of(follower: Follower) -> None:
    while follower.look():
        pass


def taken(follower: Follower, path: Path) -> Followed:
    followed = follower.release(path.stat().st_ino)
    assert followed is not None
    return followed


def test_what_grows_is_hashed_up_to_where_it_is(follower: Follower, tmp_path: Path) -> None:
    path, data = tmp_path / "0001", os.urandom(9 * BLOCK)
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(data), 700_000):
            file.write(data[at : at + 700_000])
            all_of(follower)
    followed = taken(follower, path)
    assert followed.seen == len(data)
    assert followed.running.hexdigest() == hashlib.sha256(data).hexdigest()


def test_what_was_not_seen_yet_is_left_to_whoever_takes_the_file(follower: Follower, tmp_path: Path) -> None:
    path, data = tmp_path / "0001", os.urandom(3 * BLOCK)
    path.write_bytes(data[: 2 * BLOCK - 1])
    all_of(follower)
    with path.open("ab") as file:
        file.write(data[2 * BLOCK - 1 :])
    followed = taken(follower, path)
    assert followed.seen == BLOCK
    followed.running.update(data[BLOCK:])
    assert followed.running.hexdigest() == hashlib.sha256(data).hexdigest()


def test_a_name_that_is_used_again_is_another_file(follower: Follower, tmp_path: Path) -> None:
    path, data = tmp_path / "0001", os.urandom(BLOCK)
    path.write_bytes(b"1" * 2 * BLOCK)
    all_of(follower)
    before = path.stat().st_ino
    path.unlink()
    path.write_bytes(data)
    all_of(follower)
    assert path.stat().st_ino != before  # it is held open, so its number is not given again
    assert taken(follower, path).running.hexdigest() == hashlib.sha256(data).hexdigest()


def test_what_vanishes_is_let_go_of(follower: Follower, tmp_path: Path) -> None:
    path = tmp_path / "0001"
    path.write_bytes(b"x")
    all_of(follower)
    inode = path.stat().st_ino
    path.unlink()
    follower.look()
    assert follower.count() == 0
    assert follower.release(inode) is None


def test_only_plain_files_of_one_name_are_followed(follower: Follower, tmp_path: Path) -> None:
    outside = tmp_path / "folder"
    outside.mkdir()
    (outside / "secret").write_bytes(b"x" * BLOCK)
    (tmp_path / "0001").symlink_to(outside / "secret")
    os.mkfifo(tmp_path / "0002")
    os.link(outside / "secret", tmp_path / "0003")
    assert follower.look() == 0
    assert follower.count() == 0


def test_what_cannot_be_mapped_is_left_to_whoever_takes_the_file(
    follower: Follower, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = tmp_path / "0001", os.urandom(2 * BLOCK)
    path.write_bytes(data[:BLOCK])
    all_of(follower)
    monkeypatch.setattr("provision.mirror.follower._POPULATE_READ", -1)
    path.write_bytes(data)
    assert follower.look() == 0
    followed = taken(follower, path)
    assert followed.seen == BLOCK


def test_the_thread_hashes_while_something_is_expected_and_rests_else(
    follower: Follower, tmp_path: Path
) -> None:
    path = tmp_path / "0001"
    path.write_bytes(b"x" * 100)
    looked, rested = threading.Event(), threading.Event()
    look, release = follower.look, follower.release

    def watched() -> int:
        count = look()
        looked.set()
        return count

    def let_go(inode: int) -> Followed | None:
        followed = release(inode)
        rested.set()
        return followed

    follower.look, follower.release = watched, let_go  # type: ignore[method-assign]
    follower.expect(files=True)
    assert looked.wait(10)
    assert follower.count() == 1
    follower.expect(files=False)
    assert rested.wait(10)  # what it held is let go of
    assert follower.count() == 0
