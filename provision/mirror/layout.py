"""Where the mirror keeps what on disk, and how a file gets there so that no reader sees half of it.

    sha256/DIGEST   content, read-only, served by nginx as it lies there
    names/NAME      symbolic link to content: what a name means now
    about/DIGEST    JSON: size, when it came, from whom
    pins/DIGEST     JSON: who keeps it and why
    partial/        uploads under way
    incoming/       bodies of plain PUTs, as nginx writes them
    broken/         content that no longer has its digest; never served

All of it lies on one filesystem, so that publishing is a rename.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from provision.mirror.refusals import Refusal, Why

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9_+@~][A-Za-z0-9._+@~:-]*(/[A-Za-z0-9_+@~][A-Za-z0-9._+@~:-]*){0,7}")
_NAME_LENGTH = 240
_FOLDERS = ("sha256", "names", "about", "pins", "partial", "incoming", "broken")


def prepare(root: Path) -> None:
    """Make the folders. Raises OSError."""
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True, mode=0o755)


def digest(text: str) -> str:
    """Return `text` if it is a sha256 in lower-case hexadecimal. Raises Refusal."""
    if not _DIGEST.fullmatch(text):
        raise Refusal(Why.BAD_REQUEST, "a sha256 is 64 lower-case hexadecimal digits")
    return text


def name(text: str) -> str:
    """Return `text` if it may name a file. Raises Refusal.

    Up to eight parts; a part begins with no dot, so that no name leads out of its folder or hides.
    """
    if len(text) > _NAME_LENGTH or not _NAME.fullmatch(text):
        raise Refusal(Why.BAD_REQUEST, "names are made of letters, digits and ._+@~:- with / between parts")
    return text


def write(path: Path, data: bytes) -> None:
    """Write a small file so that it is there whole or not at all, also after a power loss."""
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)


def link(path: Path, target: Path) -> None:
    """Make or move a symbolic link in one step."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(os.path.relpath(target, path.parent))
    temporary.rename(path)
    sync_folder(path.parent)


def seal(file: int, sha256: str) -> None:
    """Make an open file's content durable and read-only, and give it the time that its digest says.

    nginx makes an ETag of size and time. A time from the digest makes it follow the content alone:
    the same on every mirror, and another one as soon as a name leads to other content, also within
    the same second. Nothing else reads this time.
    """
    os.fchmod(file, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    moment = int(sha256[:8], 16) & 0x7FFFFFFF
    os.utime(file, (moment, moment))
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
