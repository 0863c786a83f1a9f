"""Recordings on disk: append-only files of time-stamped chunks, in a ring per node.

A file is a row of records: kind (1 byte), microseconds since 1970 UTC (8), length (4), both big
endian, then the bytes. Kinds: `H` header, JSON with format and node; `D` bytes of the console as
they came; `E` event, JSON with kind and text. A record that is cut short ends the file: that is
what a crash leaves. Each record is one write, so nothing waits in memory.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

FORMAT = 1
SUFFIX = ".rec"
FILE_BYTES = 8 << 20
RING_BYTES = 64 << 20

_RECORD = struct.Struct(">cQI")
_MOST = 16 << 20  # a longer record is damage


class EventKind(StrEnum):
    """What can happen to a console besides bytes."""

    STARTED = "started"
    ACTIVE = "active"
    LOST = "lost"  # the BMC went silent or ended the session; bytes may be missing from here
    STOLEN = "stolen"  # another session took the console
    WAITING = "waiting"  # could not get the console back yet
    RECOVERED = "recovered"  # bytes flow again; text says how long the gap was
    OVERRUN = "overrun"  # the BMC dropped bytes of the node
    MARK = "mark"  # set by a caller, for example "power cycle"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at `time` (seconds since 1970)."""

    time: float
    kind: EventKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as the console sent them at `time` (seconds since 1970)."""

    time: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Recording:
    """One file of a node's ring."""

    path: Path
    started: datetime
    size: int

    def entries(self) -> Iterator[Chunk | Event]:
        """Yield what the file holds, in order."""
        for kind, time, body in _records(self.path):
            if kind == b"D":
                yield Chunk(time, body)
            elif kind == b"E":
                event = _event(time, body)
                if event is not None:
                    yield event


class Writer:
    """Appends to the newest file of a ring; starts a new one and drops the oldest by size."""

    def __init__(
        self, folder: Path, node: str, *, file_bytes: int = FILE_BYTES, ring_bytes: int = RING_BYTES
    ) -> None:
        self._folder = folder
        self._node = node
        self._file_bytes = file_bytes
        self._ring_bytes = ring_bytes
        self._file = -1
        self._size = 0

    def open(self, time: float) -> None:
        """Start a file. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.close()
        name = datetime.fromtimestamp(time, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._file = os.open(
            self._folder / f"{name}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640
        )
        self._size = 0
        self._append(b"H", time, json.dumps({"format": FORMAT, "node": self._node}).encode())
        self._drop_oldest()

    def data(self, time: float, data: bytes) -> None:
        """Append bytes. Raises OSError, and then nothing of them counts as kept."""
        if self._size > self._file_bytes:
            self.open(time)
        self._append(b"D", time, data)

    def event(self, event: Event) -> None:
        body = json.dumps({"kind": event.kind, "text": event.text}).encode()
        self._append(b"E", event.time, body)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, kind: bytes, time: float, body: bytes) -> None:
        record = _RECORD.pack(kind, int(time * 1e6), len(body)) + body
        written = os.write(self._file, record)
        if written != len(record):  # the disk is full: take the torn record back
            os.ftruncate(self._file, self._size)
            raise OSError(28, "no space left for the recording", str(self._folder))
        self._size += written

    def _drop_oldest(self) -> None:
        files = recordings(self._folder)
        total = sum(file.size for file in files)
        for file in files[:-1]:
            if total <= self._ring_bytes:
                break
            file.path.unlink(missing_ok=True)
            total -= file.size


def recordings(folder: Path) -> tuple[Recording, ...]:
    """Return a node's recordings, oldest first; empty where there are none."""
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            started = datetime.strptime(path.name.removesuffix(SUFFIX), "%Y%m%dT%H%M%S.%fZ")  # noqa: DTZ007  set below
            size = path.stat().st_size
        except (ValueError, FileNotFoundError):
            continue
        found.append(Recording(path, started.replace(tzinfo=UTC), size))
    return tuple(found)


def entries(folder: Path) -> Iterator[Chunk | Event]:
    """Yield everything in a node's ring, oldest first."""
    for recording in recordings(folder):
        yield from recording.entries()


def _records(path: Path) -> Iterator[tuple[bytes, float, bytes]]:
    with path.open("rb") as file:
        while len(head := file.read(_RECORD.size)) == _RECORD.size:
            kind, micros, length = _RECORD.unpack(head)
            if length > _MOST or kind not in b"HDE" or len(body := file.read(length)) != length:
                return
            yield kind, micros / 1e6, body


def _event(time: float, body: bytes) -> Event | None:
    try:
        said = json.loads(body)
        return Event(time, EventKind(said["kind"]), str(said["text"]))
    except (ValueError, KeyError, TypeError):
        return None
