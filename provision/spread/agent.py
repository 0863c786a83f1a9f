"""Fetch one file on a node, from other nodes where libtorrent is there, else over HTTP.

One file, standard library only, Python 3.8 or newer: it travels to nodes through a pipe. Input is one
line of JSON, the job; then standard input is only watched: when it closes, everything ends. Output
is one line of JSON for each step of the way, the last with "done" or "failed".

Job: url (the mirror), sha256, size, dest, source (peers or http), share (which of how many), port,
stall_s, linger_s.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import random
import select
import shutil
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Any, Iterator

_BLOCK = 1 << 20
_TELL_S = 0.5
_TRIES = 5
_PAUSE_S = 1.0
_AGAIN_S = 2.0
_TIMEOUT_S = 30.0

Job = Any  # what JSON holds; and libtorrent's own objects

# What a peer of a closed site needs: no discovery beyond its tracker, no encryption, many peers.
PEER_SETTINGS = {
    "user_agent": "muster-spread/1",
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_outgoing_utp": False,
    "enable_incoming_utp": False,
    "announce_to_all_trackers": True,
    "out_enc_policy": 2,
    "in_enc_policy": 2,
    "connections_limit": 200,
    "connection_speed": 200,
    "torrent_connect_boost": 200,
    "unchoke_slots_limit": -1,
    "mixed_mode_algorithm": 0,
    "strict_end_game_mode": False,
    "prioritize_partial_pieces": True,
    "initial_picker_threshold": 0,
    "max_out_request_queue": 500,
    "request_queue_time": 3,
    "piece_timeout": 60,
    "request_timeout": 60,
    "min_reconnect_time": 2,
    "no_atime_storage": True,
}


class Ended(Exception):
    """Whoever started us has gone."""


class Failed(Exception):
    """The file cannot be had; the message says why."""


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def watched(seconds: float) -> None:
    """Wait, and raise Ended as soon as standard input closes."""
    readable, _, _ = select.select([0], [], [], seconds)
    if readable and not os.read(0, 4096):
        raise Ended


def digest(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(_BLOCK), b""):
            found.update(block)
    return found.hexdigest()


class Teller:
    """Tells how far we are, twice a second at most."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._next = 0.0

    def at(self, have: int, source: str) -> None:
        now = time.monotonic()
        if now >= self._next or have == self._size:
            self._next = now + _TELL_S
            tell(have=have, of=self._size, source=source)


def place(job: Job, part: str) -> None:
    """Put a complete, verified file to its destination; readers see the old one or the new one."""
    found = digest(part)
    if found != job["sha256"]:
        os.unlink(part)
        raise Failed("what arrived has sha256 %s, promised was %s" % (found, job["sha256"]))
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    dest = job["dest"]
    fresh = "%s.%s.new" % (dest, os.getpid())
    # A link, not a move: peers are still given the file from where it lies.
    os.link(part, fresh)
    os.chmod(fresh, 0o644)
    os.rename(fresh, dest)


def over_http(job: Job, part: str, teller: Teller) -> None:
    """Fetch over HTTP, going on with what is there."""
    url = "%s/sha256/%s" % (job["url"], job["sha256"])
    failures = 0
    while True:
        have = os.path.getsize(part) if os.path.exists(part) else 0
        if have >= job["size"]:
            return
        try:
            _rest(url, part, have, teller)
            failures = 0
        except (OSError, urllib.error.URLError, ValueError) as error:
            failures += 1
            if failures >= _TRIES:
                raise Failed("%s: %s" % (url, error)) from error
        watched(_PAUSE_S * failures)


def _rest(url: str, part: str, have: int, teller: Teller) -> None:
    request = urllib.request.Request(url, headers={"Range": "bytes=%d-" % have} if have else {})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        if have and answer.status != 206:
            have = 0
        with open(part, "ab" if have else "wb") as file:
            for block in iter(lambda: answer.read(_BLOCK), b""):
                file.write(block)
                have += len(block)
                teller.at(have, "http")
                watched(0)


class Share(threading.Thread):
    """Fetches pieces from the mirror over HTTP and gives them to the swarm.

    Every node takes another share of the file from the mirror and the rest from the others, so that the
    mirror sends one copy in all. Nodes that fell out leave holes; those are filled from the mirror,
    each node at other places.
    """

    def __init__(self, job: Job, handle: Any, info: Any) -> None:
        super().__init__(daemon=True)
        self._job = job
        self._handle = handle
        self._length = info.piece_length()
        self._count = info.num_pieces()
        self._ended = threading.Event()
        self.fetched = 0  # bytes
        self.why = ""

    def run(self) -> None:
        mine, of = self._job["share"]
        try:
            self._fetch(self._count * mine // of, self._count * (mine + 1) // of)
            patience = self._job["stall_s"]
            while not self._ended.is_set():
                patience = self._fill(patience)
        except (OSError, RuntimeError, ValueError) as error:
            self.why = str(error)

    def stop(self) -> None:
        self._ended.set()

    def _fill(self, patience: float) -> float:
        """Where nothing comes for `patience` seconds, fetch our part of what is missing, at random places.

        Return how long to wait before the next look: whoever has filled once need not be patient again.
        """
        before = self._handle.status().total_done
        if self._ended.wait(patience) or self._handle.status().total_done != before:
            return float(self._job["stall_s"])
        missing = [piece for piece in range(self._count) if not self._handle.have_piece(piece)]
        part = -(-len(missing) // self._job["share"][1])
        for piece in random.sample(missing, part):
            if not self._handle.have_piece(piece):
                self._fetch(piece, piece + 1)
        return _AGAIN_S

    def _fetch(self, first: int, end: int) -> None:
        """Fetch pieces in one request, taken up again where it breaks."""
        failures = 0
        while first < end and not self._ended.is_set():
            try:
                for data in self._read(first, end):
                    self._handle.add_piece(first, data, 0)
                    self.fetched += len(data)
                    first += 1
                    failures = 0
            except (OSError, http.client.HTTPException):
                failures += 1
                if failures >= _TRIES:
                    raise
                self._ended.wait(_PAUSE_S * failures)

    def _read(self, first: int, end: int) -> Iterator[bytes]:
        start, stop = first * self._length, min(end * self._length, self._job["size"])
        url = "%s/sha256/%s" % (self._job["url"], self._job["sha256"])
        request = urllib.request.Request(url, headers={"Range": "bytes=%d-%d" % (start, stop - 1)})
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            if answer.status != 206:
                raise ValueError("the mirror does not serve parts of files")
            while start < stop and not self._ended.is_set():
                size = min(self._length, stop - start)
                data = answer.read(size)
                if len(data) != size:
                    raise OSError("the connection was cut")
                yield data
                start += size


def over_peers(libtorrent: Any, job: Job, folder: str, teller: Teller) -> tuple[Any, Any, Share]:
    """Fetch our share from the mirror and the rest from other nodes; return what goes on serving."""
    with urllib.request.urlopen("%s/torrents/%s" % (job["url"], job["sha256"]), timeout=_TIMEOUT_S) as answer:
        described = answer.read()
    session = libtorrent.session(dict(PEER_SETTINGS, listen_interfaces="0.0.0.0:%d" % job["port"]))
    params = libtorrent.add_torrent_params()
    params.ti = libtorrent.torrent_info(libtorrent.bdecode(described))
    params.save_path = folder
    flags = libtorrent.torrent_flags
    params.flags &= ~(flags.auto_managed | flags.paused)
    handle = session.add_torrent(params)
    while handle.status().state == libtorrent.torrent_status.states.checking_files:
        watched(0.1)  # an earlier attempt left something
    share = Share(job, handle, params.ti)
    share.start()
    try:
        while True:
            status = handle.status()
            if status.errc.value():
                raise Failed(status.errc.message())
            teller.at(status.total_wanted_done, "peers")
            if status.is_seeding:
                return session, handle, share
            if share.why:
                raise Failed(share.why)
            watched(0.1)
    finally:
        share.stop()


def serve_on(job: Job, handle: Any) -> None:
    """Give others what we have until standard input closes, or the time is up."""
    until = time.monotonic() + job["linger_s"]
    with contextlib.suppress(Ended):
        while time.monotonic() < until:
            watched(1.0)
            tell(sent=handle.status().total_payload_upload)


def peers_library() -> Any:
    """Return libtorrent, or why there is none."""
    try:
        import libtorrent
    except ImportError as error:
        return str(error)
    return libtorrent


def run(job: Job) -> None:
    begun = time.monotonic()
    dest = job["dest"]
    if os.path.exists(dest) and os.path.getsize(dest) == job["size"] and digest(dest) == job["sha256"]:
        tell(done=True, source="there", seconds=0.0)
        return
    folder = os.path.join(os.path.dirname(dest) or ".", ".spread-" + job["sha256"][:16])
    part = os.path.join(folder, job["sha256"])
    os.makedirs(folder, exist_ok=True)
    teller = Teller(job["size"])
    swarm, source, why, fetched = None, "http", "", job["size"]
    if job["source"] == "peers":
        library = peers_library()
        why = library if isinstance(library, str) else ""
        try:
            if not why:
                swarm = over_peers(library, job, folder, teller)
                source, fetched = "peers", swarm[2].fetched
        except (OSError, RuntimeError) as error:
            why = str(error)
    if swarm is None:
        over_http(job, part, teller)
    place(job, part)
    took = round(time.monotonic() - begun, 2)
    tell(done=True, source=source, why=why, fetched=fetched, seconds=took)
    if swarm is not None:
        serve_on(job, swarm[1])
    shutil.rmtree(folder, ignore_errors=True)


def read_line() -> bytes:
    """Read up to a line's end and no byte more: what comes after is watched, not read."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise Ended
        line += byte
    return line


def main() -> int:
    try:
        run(json.loads(read_line()))
    except Ended:
        return 130
    except (Failed, OSError, ValueError, KeyError) as error:
        tell(failed=str(error) or type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
