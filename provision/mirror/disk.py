"""Bytes on their way to the disk, beside everything else that is done meanwhile."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STEP = 8 << 20  # bytes after which the disk is made to begin, so that little is left at the end
_WRITE = 2  # SYNC_FILE_RANGE_WRITE

_libc = ctypes.CDLL(None)


class Disk:
    """Writes of one upload, one after the other, beside receiving; and the disk is kept at work."""

    def __init__(self, threads: ThreadPoolExecutor, handle: int) -> None:
        self._threads = threads
        self._handle = handle
        self._writing: asyncio.Future[None] | None = None
        self._beginning: asyncio.Future[None] | None = None
        self._waiting = 0

    async def write(self, work: Callable[[], None], size: int) -> None:
        """Begin a write once the one before has ended. Raises what that one raised."""
        loop = asyncio.get_running_loop()
        if self._writing:
            await asyncio.shield(self._writing)
        self._writing = loop.run_in_executor(self._threads, work)
        self._waiting += size
        if self._waiting >= STEP and (self._beginning is None or self._beginning.done()):
            self._waiting = 0
            self._beginning = loop.run_in_executor(self._threads, begin, self._handle)

    async def settle(self) -> None:
        """Wait for everything begun. Raises what went wrong."""
        for begun in (self._writing, self._beginning):
            if begun:
                await asyncio.shield(begun)


def begin(handle: int, offset: int = 0) -> None:
    """Have the disk begin with what a file holds from `offset` on, without waiting until it is there.

    Not by `fdatasync`, which waits and empties the disk's own cache each time. Nothing depends on it: where
    the call is not there or is refused, `sync` does all the work, and it also tells of writes that failed.
    """
    call = getattr(_libc, "sync_file_range", None)
    if call is not None:
        call(handle, ctypes.c_int64(offset), ctypes.c_int64(0), _WRITE)


def sync(path: Path) -> None:
    """Make a file's content durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
