"""The tracker introduces the peers of one file to each other and knows no other file."""

from __future__ import annotations

from pathlib import Path

import libtorrent

from provision.spread.torrent import describe, piece_length
from provision.spread.tracker import Tracker

FILE = bytes(range(20))


def ask(
    tracker: Tracker, peer: int, *, left: int = 1, event: str = "started", info: bytes = FILE
) -> dict[bytes, object]:
    info_hash = "".join(f"%{byte:02x}" for byte in info)
    query = f"info_hash={info_hash}&peer_id={peer:020}&port=6881&left={left}&event={event}&compact=1"
    return dict(libtorrent.bdecode(tracker.announce(query, f"10.0.0.{peer}")))


def test_peers_learn_of_each_other() -> None:
    tracker = Tracker()
    tracker.allow(FILE)
    assert ask(tracker, 1)[b"peers"] == b""
    answer = ask(tracker, 2)
    assert answer[b"peers"] == bytes((10, 0, 0, 1)) + (6881).to_bytes(2, "big")
    assert (answer[b"complete"], answer[b"incomplete"]) == (0, 1)
    assert ask(tracker, 1, left=0, event="completed")[b"incomplete"] == 1
    assert ask(tracker, 2)[b"complete"] == 1


def test_another_file_is_refused() -> None:
    assert b"failure reason" in ask(Tracker(), 1)


def test_whoever_stops_or_falls_silent_is_forgotten() -> None:
    now = [0.0]
    tracker = Tracker(clock=lambda: now[0])
    tracker.allow(FILE)
    ask(tracker, 1)
    ask(tracker, 2)
    ask(tracker, 2, event="stopped")
    assert tracker.peers(FILE) == 1
    now[0] = 80.0
    assert tracker.peers(FILE) == 0


def test_a_query_that_makes_no_sense_is_refused() -> None:
    tracker = Tracker()
    tracker.allow(FILE)
    hashed = "".join(f"%{byte:02x}" for byte in FILE)
    for query in (f"info_hash={hashed}", f"info_hash={hashed}&peer_id=short&port=1", "", "&&=&info_hash"):
        assert b"failure reason" in tracker.announce(query, "10.0.0.1")


def test_libtorrent_reads_our_description(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 700_000)
    torrent = describe(tmp_path / "f", "http://10.0.0.1/announce")
    info = libtorrent.torrent_info(libtorrent.bdecode(torrent.data))
    assert info.info_hashes().v1.to_bytes() == torrent.info_hash
    assert (info.num_pieces(), info.total_size(), info.priv()) == (3, 700_000, True)


def test_pieces_are_never_too_many() -> None:
    for size in (0, 1, 256 << 20, 20 << 30, 60 << 30):
        assert size // piece_length(size) <= 4096
