"""Describes a file for peers (BEP 3): its pieces, their hashes, and where peers meet."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Union

Bencoded = Union[bytes, int, Mapping[bytes, "Bencoded"]]  # noqa: UP007  a name that refers to itself

_SMALLEST, _LARGEST = 256 << 10, 16 << 20
_MOST_PIECES = 4096


@dataclass(frozen=True, slots=True)
class Torrent:
    """`data` is what peers read, `info_hash` what they call the file."""

    data: bytes
    info_hash: bytes


def describe(content: Path, tracker: str) -> Torrent:
    """Read a whole file and describe it. Raises OSError."""
    length = piece_length(content.stat().st_size)
    hashes = bytearray()
    with content.open("rb") as file:
        while piece := file.read(length):
            hashes += hashlib.sha1(
                piece, usedforsecurity=False
            ).digest()  # the protocol's; sha256 judges at the end
    info: Bencoded = {
        b"length": content.stat().st_size,
        b"name": content.name.encode(),
        b"piece length": length,
        b"pieces": bytes(hashes),
        b"private": 1,
    }
    info_hash = hashlib.sha1(bencode(info), usedforsecurity=False).digest()
    return Torrent(bencode({b"announce": tracker.encode(), b"info": info}), info_hash)


def piece_length(size: int) -> int:
    """Return how long pieces are: short enough that every node soon has some to give, few enough to count."""
    length = _SMALLEST
    while size // length > _MOST_PIECES and length < _LARGEST:
        length *= 2
    return length


def bencode(value: Bencoded) -> bytes:
    """Encode bytes, numbers and mappings, whose keys come out sorted."""
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, bytes):
        return b"%d:%s" % (len(value), value)
    return b"d" + b"".join(bencode(key) + bencode(value[key]) for key in sorted(value)) + b"e"
