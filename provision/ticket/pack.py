"""Fits files into a size, and packs them so that the same files give the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

MANIFEST = "MANIFEST.sha256"

_CUTTABLE = ("console/", "host/")
_LOGS = (".txt", ".cast")
_DROPPABLE = "bmc/vendor/"
_SMALLEST = 4096  # bytes; a log is not cut below this
_HEADER = 512  # of each file in the archive


@dataclass(frozen=True, slots=True)
class Cut:
    """What was taken away from the front of a file; all of it where `whole`."""

    file: str
    bytes: int
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.file}: " + ("left out" if self.whole else f"{self.bytes} bytes cut from the front")


@dataclass(frozen=True, slots=True)
class Fitted:
    """Files that fit, and what it cost."""

    files: Mapping[str, bytes]
    cuts: tuple[Cut, ...]
    size: int  # compressed, about


def fit(files: Mapping[str, bytes], limit: int) -> Fitted:
    """Cut the largest console and host logs at the front until all compress into `limit` bytes.

    A vendor's dump that is still too large is left out. `size` says whether it was enough.
    """
    left = dict(files)
    if sum(len(data) + _HEADER for data in left.values()) <= limit:
        return Fitted(left, (), sum(map(len, left.values())))
    sizes = {path: _packed(data) for path, data in left.items()}
    while sum(sizes.values()) > limit:
        logs = [path for path in left if _is_log(path) and len(left[path]) > _SMALLEST]
        dumps = [path for path in left if path.startswith(_DROPPABLE)]
        if logs:
            path = max(logs, key=lambda path: (sizes[path], path))
            # Not below what is needed, and at most by half: how well the rest packs is not known yet.
            spare = sum(sizes.values()) - limit
            share = max(0.5, 1 - 1.1 * spare / sizes[path])
            left[path] = _tail(path, left[path], max(int(len(left[path]) * share), _SMALLEST))
            sizes[path] = _packed(left[path])
        elif dumps:
            path = max(dumps, key=lambda path: (sizes[path], path))
            del left[path], sizes[path]
        else:
            break
    cuts = [
        Cut(path, len(data) - len(left.get(path, b"")), whole=path not in left)
        for path, data in files.items()
        if left.get(path) is not data
    ]
    noted = {cut.file: _noted(cut, left[cut.file]) for cut in cuts if not cut.whole}
    return Fitted({**left, **noted}, tuple(cuts), sum(sizes.values()))


def packed_size(files: Mapping[str, bytes]) -> int:
    """Return about how much of an archive `files` take."""
    return sum(_packed(data) for data in files.values())


def _packed(data: bytes) -> int:
    return len(zlib.compress(data, 6)) + _HEADER


def _is_log(path: str) -> bool:
    return path.startswith(_CUTTABLE) and path.endswith(_LOGS)


def _tail(path: str, data: bytes, size: int) -> bytes:
    """Return the end of a log, from the beginning of a line; an asciicast keeps its header."""
    head = data[: data.find(b"\n") + 1] if path.endswith(".cast") else b""
    rest = data[-max(size - len(head), 1) :]
    start = rest.find(b"\n") + 1
    return head + rest[start:]


def _noted(cut: Cut, data: bytes) -> bytes:
    """Say in the file itself what is missing, in its own form."""
    note = f"{cut.bytes} bytes cut from the front to fit the size limit"
    if cut.file.endswith(".cast"):
        head, _, rest = data.partition(b"\n")
        return head + f'\n[0.0, "m", "{note}"]\n'.encode() + rest
    return f"[... {note} ...]\n".encode() + data


def manifest(files: Mapping[str, bytes]) -> bytes:
    """Return the digests of all files in the form that `sha256sum --check` reads."""
    lines = (f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(files.items()))
    return "".join(lines).encode()


def archive(files: Mapping[str, bytes], *, top: str, time: datetime) -> bytes:
    """Return a tar.gz of `files` and their manifest under the folder `top`: sorted, mode 0600, no names."""
    every = {**files, MANIFEST: manifest(files)}
    stamp = int(time.timestamp())
    out = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=stamp) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tape,
    ):
        for path, data in sorted(every.items()):
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size, entry.mtime, entry.mode = len(data), stamp, 0o600
            tape.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def publish(path: Path, data: bytes) -> str:
    """Write a file and its `.sha256` beside it, for their owner only; all or nothing. Returns the digest.

    Raises OSError, FileExistsError where there is such a file already.
    """
    digest = hashlib.sha256(data).hexdigest()
    beside = path.with_name(f"{path.name}.sha256")
    made: list[Path] = []
    try:
        for place, content in ((path, data), (beside, f"{digest}  {path.name}\n".encode())):
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            made.append(place)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        for place in made:
            place.unlink(missing_ok=True)
        raise
    return digest
