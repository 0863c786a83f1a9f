"""The mirror's files: content under its digest, names that lead to it, pins that keep it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from provision.mirror import layout
from provision.mirror.promise import UnderWay
from provision.mirror.refusals import Refusal, Why

_BLOCK = 1 << 20
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`reserve` bytes stay free on the disk; `quota` bounds all content, `quota_each` what one
    identity sent; 0 is no bound."""

    reserve: int
    quota: int = 0
    quota_each: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One content of the mirror. `stored_at` is in seconds since 1970."""

    sha256: str
    size: int
    names: tuple[str, ...]
    stored_at: float
    by: str
    pinned: str = ""  # who and why; empty: not pinned


class Store:
    """The one owner of a mirror's folder; a second one on the same folder is refused.

    Methods block on the disk; call them from threads. None may run twice at once: the service
    holds a lock around those that write.
    """

    def __init__(self, root: Path, limits: Limits, clock: Callable[[], float] = time.time) -> None:
        self.root = root
        self._limits = limits
        self._clock = clock
        layout.prepare(root)
        self._owner = os.open(root / ".owner", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._owner)
            raise RuntimeError(f"{root} is served by another process") from error
        self._sizes: dict[str, int] = {}
        self._by: dict[str, str] = {}
        self._load()

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._owner)

    def content(self, sha256: str) -> Path:
        """Return where the content of `sha256` lies, whether it is there or not."""
        return self.root / "sha256" / sha256

    def has(self, sha256: str) -> bool:
        """Say whether the content is there."""
        return sha256 in self._sizes

    def free(self) -> int:
        """Return how many bytes may be written before the reserve is reached; below 0 when it is."""
        return shutil.disk_usage(self.root).free - self._limits.reserve

    def held(self) -> int:
        """Return the size of all content."""
        return sum(self._sizes.values())

    def count(self) -> int:
        """Return how many contents there are."""
        return len(self._sizes)

    def full(self) -> bool:
        """Say whether the disk itself has no room, whatever the reserve."""
        return shutil.disk_usage(self.root).free < _BLOCK

    def make_room(self, size: int, by: str, under_way: UnderWay) -> None:
        """Raise Refusal where `size` bytes of `by` do not fit beside what is under way."""
        if self._limits.quota and self.held() + under_way.quota + size > self._limits.quota:
            raise Refusal(Why.QUOTA, f"the mirror's quota is {self._limits.quota} bytes")
        mine = sum(length for sha256, length in self._sizes.items() if self._by.get(sha256) == by)
        if self._limits.quota_each and mine + under_way.quota_each + size > self._limits.quota_each:
            raise Refusal(Why.QUOTA, f"the quota of {by} is {self._limits.quota_each} bytes")
        self.keep_reserve(size, under_way)

    def keep_reserve(self, size: int, under_way: UnderWay) -> None:
        """Raise Refusal where `size` bytes do not fit on the disk beside what is under way."""
        free = self.free() - under_way.disk
        if free < size:
            raise Refusal(Why.NO_ROOM, f"{size} bytes do not fit: {max(free, 0)} are free beside the reserve")

    def publish(self, temporary: Path, sha256: str, by: str) -> None:
        """Move a complete, verified file to its digest. Nothing happens where it is already."""
        if self.has(sha256):
            temporary.unlink()
            return
        handle = os.open(temporary, os.O_RDWR)
        try:
            layout.seal(handle, sha256)
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        about = {"size": size, "stored_at": self._clock(), "by": by}
        layout.write(self.root / "about" / sha256, json.dumps(about).encode())
        temporary.rename(self.content(sha256))
        layout.sync_folder(self.root / "sha256")
        self._sizes[sha256] = size
        self._by[sha256] = by

    def resolve(self, name: str) -> str | None:
        """Return the digest that `name` leads to, or None."""
        with suppress(OSError):
            sha256 = (self.root / "names" / name).readlink().name
            return sha256 if self.has(sha256) else None
        return None

    def check_name(self, name: str, sha256: str, *, replace: bool) -> None:
        """Raise Refusal where `name` leads elsewhere and may not be moved, or is a folder."""
        path = self.root / "names" / name
        folders = [parent for parent in path.parents if parent.is_relative_to(self.root / "names")]
        if path.is_dir() and not path.is_symlink():
            raise Refusal(Why.NAME_TAKEN, f"{name} is a folder of names")
        if any(parent.is_symlink() for parent in folders):
            raise Refusal(Why.NAME_TAKEN, f"a part of {name} is a file's name")
        there = self.resolve(name)
        if there not in {None, sha256} and not replace:
            raise Refusal(Why.NAME_TAKEN, f"{name} leads to sha256 {there}")

    def point(self, name: str, sha256: str, *, replace: bool) -> None:
        """Let `name` lead to content that is there. Raises Refusal."""
        self.check_name(name, sha256, replace=replace)
        if not self.has(sha256):
            raise Refusal(Why.UNKNOWN, f"there is no content {sha256}")
        layout.link(self.root / "names" / name, self.content(sha256))

    def unpoint(self, name: str) -> None:
        """Forget a name; its content stays until the next collection. Raises Refusal."""
        if self.resolve(name) is None:
            raise Refusal(Why.UNKNOWN, f"there is no {name}")
        path = self.root / "names" / name
        path.unlink()
        layout.sync_folder(path.parent)

    def pin(self, sha256: str, who: str, why: str) -> None:
        """Keep content from being collected. Raises Refusal where it is not there."""
        if not self.has(sha256):
            raise Refusal(Why.UNKNOWN, f"there is no content {sha256}")
        layout.write(self.root / "pins" / sha256, json.dumps({"who": who, "why": why}).encode())

    def unpin(self, sha256: str) -> None:
        """Take a pin away, if there is one."""
        (self.root / "pins" / sha256).unlink(missing_ok=True)

    def entries(self) -> Sequence[Entry]:
        """Return all content, by first name, then digest."""
        names: dict[str, list[str]] = {}
        for name, sha256 in self.names():
            names.setdefault(sha256, []).append(name)
        found = [self._entry(sha256, tuple(sorted(names.get(sha256, ())))) for sha256 in self._sizes]
        return sorted(found, key=lambda entry: (not entry.names, entry.names, entry.sha256))

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield every name with the digest that it leads to."""
        top = self.root / "names"
        for folder, _, files in os.walk(top):
            for file in files:
                path = Path(folder) / file
                if path.is_symlink() and not file.startswith("."):
                    yield str(path.relative_to(top)), path.readlink().name

    def collect(self, days: float, *, dry_run: bool, keep: frozenset[str] = frozenset()) -> Sequence[Entry]:
        """Remove content that no name leads to, no pin keeps and that is older than `days`; return it."""
        oldest = self._clock() - days * _DAY_S
        gone = [
            entry
            for entry in self.entries()
            if not entry.names and not entry.pinned and entry.stored_at <= oldest and entry.sha256 not in keep
        ]
        if not dry_run:
            for entry in gone:
                self.content(entry.sha256).unlink(missing_ok=True)
                (self.root / "about" / entry.sha256).unlink(missing_ok=True)
                self._forget(entry.sha256)
        return gone

    def intact(self, sha256: str) -> bool:
        """Read content again; what no longer has its digest is put away and served no more."""
        try:
            good = _hash(self.content(sha256)) == sha256
        except FileNotFoundError:
            good = False
        if not good:
            self._put_away(sha256)
        return good

    def digests(self) -> Sequence[str]:
        """Return the digests of all content."""
        return sorted(self._sizes)

    def _entry(self, sha256: str, names: tuple[str, ...]) -> Entry:
        about = _json(self.root / "about" / sha256)
        pin = _json(self.root / "pins" / sha256)
        return Entry(
            sha256=sha256,
            size=self._sizes[sha256],
            names=names,
            stored_at=float(str(about.get("stored_at", 0.0))),
            by=str(about.get("by", "")),
            pinned=f"{pin.get('who')}: {pin.get('why')}" if pin else "",
        )

    def _load(self) -> None:
        """Take stock. A file of another size than was recorded was cut by a crash: it is put away."""
        for path in (self.root / "sha256").iterdir():
            size = path.stat().st_size
            about = _json(self.root / "about" / path.name)
            self._sizes[path.name] = size
            self._by[path.name] = str(about.get("by", ""))
            if about.get("size") != size:
                self._put_away(path.name)

    def _put_away(self, sha256: str) -> None:
        with suppress(FileNotFoundError):
            self.content(sha256).rename(self.root / "broken" / sha256)
        self._forget(sha256)

    def _forget(self, sha256: str) -> None:
        self._sizes.pop(sha256, None)
        self._by.pop(sha256, None)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(path: Path) -> dict[str, object]:
    try:
        read = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}
