"""Hashes files while another program writes them, so that little is left to do when they are whole.

They are mapped and not read: to copy what another core has just written costs more than half as much as to
hash it, and in a mapping the hash does not wait for it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from provision.mirror.disk import STEP, begin

if TYPE_CHECKING:
    from hashlib import _Hash

BLOCK = 1 << 20  # what is less at the end is left to whoever takes the file
_TURN = 8  # blocks of one file before it is the next one's turn
_MOST = 64  # files followed at once; what comes beyond is hashed when it is whole
_SHORTEST_S, _LONGEST_S = 0.002, 0.1  # pauses while nothing comes
_POPULATE_READ = 22  # MADV_POPULATE_READ, since Linux 5.14


@dataclass(slots=True)
class Followed:
    """A file as far as it was hashed: `seen` bytes are in `running`."""

    handle: int
    seen: int = 0
    running: _Hash = field(default_factory=hashlib.sha256)
    begun: int = 0
    beginning: Future[None] | None = None
    over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Follower:
    """One thread that hashes what grows in a folder; it rests while nothing is expected there.

    A file is known by its inode number, which nothing else can have while we hold it open: names are
    used again. A file that was let go of, or never seen, is nobody's loss: it is hashed when it is whole.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, Followed] = {}
        self._changed = threading.Condition()
        self._expected = False
        self._closing = False
        self._thread: threading.Thread | None = None
        self._disk = ThreadPoolExecutor(1, "mirror-disk")

    def expect(self, *, files: bool) -> None:
        """Say whether files are to come or to grow; without any, the thread rests."""
        with self._changed:
            self._expected = files
            if files and self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="mirror-follower", daemon=True)
                self._thread.start()
            self._changed.notify()

    def release(self, inode: int) -> Followed | None:
        """Stop following a file, and return how far it was hashed; None: not at all."""
        with self._changed:
            followed = self._files.pop(inode, None)
        if followed is None:
            return None
        with followed.lock:
            followed.over = True
        os.close(followed.handle)
        return followed

    def close(self) -> None:
        """End the thread and let go of all files."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread:
            self._thread.join()
        self._disk.shutdown()
        self._let_go()

    def count(self) -> int:
        """Return how many files are followed."""
        return len(self._files)

    def look(self) -> int:
        """Hash some of every file that has grown, and return how many bytes that was."""
        present = self._present()
        with self._changed:
            vanished = [inode for inode in self._files if inode not in present]
            files = [followed for inode, followed in self._files.items() if inode in present]
        for inode in vanished:
            self.release(inode)
        return sum(self._hash(followed) for followed in files)

    def _run(self) -> None:
        pause = _SHORTEST_S
        while not self._closing:
            if self._expected and self.look():
                pause = _SHORTEST_S
                continue
            if not self._expected:
                self._let_go()
            with self._changed:
                if self._closing:
                    return
                told = self._changed.wait(pause if self._expected else None)
            pause = _SHORTEST_S if told else min(2 * pause, _LONGEST_S)

    def _let_go(self) -> None:
        """Close what is held: a file that was removed takes its room until then."""
        for inode in list(self._files):
            self.release(inode)

    def _present(self) -> set[int]:
        """Return the inode numbers of what is in the folder, and begin to follow what is new."""
        present = set()
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    inode = entry.stat(follow_symlinks=False).st_ino
                    if inode in self._files or self._begin(entry.path, inode):
                        present.add(inode)
        return present

    def _begin(self, path: str, inode: int) -> bool:
        if len(self._files) >= _MOST:
            return False
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(handle)
        # With a second name it is whole, and somebody else's already.
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_ino != inode:
            os.close(handle)
            return False
        with self._changed:
            self._files[inode] = Followed(handle)
        return True

    def _hash(self, followed: Followed) -> int:
        before = followed.seen
        for _ in range(_TURN):
            with followed.lock:
                # What is mapped must be there: nobody makes a file of this folder shorter.
                if followed.over or os.fstat(followed.handle).st_size < followed.seen + BLOCK:
                    break
                try:
                    _update(followed)
                except (OSError, ValueError):
                    followed.over = True  # whoever takes the file reads the rest, and is told what is wrong
                    break
                self._begin_writing(followed)
        return followed.seen - before

    def _begin_writing(self, followed: Followed) -> None:
        """Have the disk begin with what is there, unless it is still taking what came before."""
        busy = followed.beginning is not None and not followed.beginning.done()
        if busy or followed.seen - followed.begun < STEP:
            return
        # A handle of its own: ours may be closed, and its number used again, before it is its turn.
        handle = os.dup(followed.handle)
        followed.beginning = self._disk.submit(_begin_and_close, handle, followed.begun)
        followed.begun = followed.seen


def _update(followed: Followed) -> None:
    """Hash the next block. Raises OSError."""
    with mmap.mmap(
        followed.handle, BLOCK, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, offset=followed.seen
    ) as block:
        block.madvise(_POPULATE_READ)  # says now what would be a signal, and our end, while it is hashed
        followed.running.update(block)
    followed.seen += BLOCK


def _begin_and_close(handle: int, offset: int) -> None:
    try:
        begin(handle, offset)
    finally:
        os.close(handle)
