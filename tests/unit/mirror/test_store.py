"""What the mirror's folder promises, also after a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.mirror.promise import UnderWay
from provision.mirror.refusals import Refusal, Why
from provision.mirror.store import Limits, Store


def add(store: Store, data: bytes, by: str = "ana") -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    part = store.root / "partial" / "part"
    part.write_bytes(data)
    store.publish(part, sha256, by)
    return sha256


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path, Limits(reserve=0, quota=100, quota_each=60), clock=lambda: 1000.0)
    yield made
    made.close()


def test_a_second_owner_is_refused(store: Store) -> None:
    with pytest.raises(RuntimeError, match="served by another process"):
        Store(store.root, Limits(reserve=0))


def test_content_that_a_crash_cut_is_put_away_at_start(tmp_path: Path) -> None:
    first = Store(tmp_path, Limits(reserve=0))
    sha256 = add(first, b"whole")
    first.point("f", sha256, replace=False)
    first.close()
    first.content(sha256).chmod(0o644)
    first.content(sha256).write_bytes(b"who")
    second = Store(tmp_path, Limits(reserve=0))
    assert not second.has(sha256)
    assert second.resolve("f") is None
    assert (tmp_path / "broken" / sha256).exists()
    add(second, b"whole")
    assert second.resolve("f") == sha256
    second.close()


def test_quotas_count_what_is_promised(store: Store) -> None:
    add(store, b"x" * 50)
    for size, promised, by, refused in ((10, 0, "ana", False), (11, 0, "ana", True), (50, 0, "ben", False),
                                        (50, 1, "ben", True)):  # fmt: skip
        if refused:
            with pytest.raises(Refusal) as refusal:
                store.make_room(size, by, UnderWay(quota=promised))
            assert refusal.value.why is Why.QUOTA
        else:
            store.make_room(size, by, UnderWay(quota=promised))


def test_a_name_is_no_folder_of_names_and_the_other_way_round(store: Store) -> None:
    sha256 = add(store, b"x")
    store.point("a/b", sha256, replace=False)
    for name in ("a", "a/b/c"):
        with pytest.raises(Refusal) as refusal:
            store.point(name, sha256, replace=True)
        assert refusal.value.why is Why.NAME_TAKEN


def test_young_content_and_content_in_use_is_not_collected(store: Store) -> None:
    old, used = add(store, b"old"), add(store, b"used")
    assert store.collect(1, dry_run=False) == []
    gone = store.collect(0, dry_run=False, keep=frozenset({used}))
    assert [entry.sha256 for entry in gone] == [old]
    assert store.has(used)


def test_the_time_of_content_follows_its_digest_alone(store: Store, tmp_path: Path) -> None:
    one, two = add(store, b"one"), add(store, b"two")
    times = [store.content(sha256).stat().st_mtime for sha256 in (one, two)]
    assert times == [int(sha256[:8], 16) & 0x7FFFFFFF for sha256 in (one, two)]
