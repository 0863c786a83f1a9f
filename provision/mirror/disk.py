"""Bytes on their way to the disk, beside everything else that is done meanwhile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SYNC = 32 << 20  # bytes after which the disk is made to begin, so that little is left at the end


class Disk:
    """Writes of one upload, one after the other, beside receiving; and the disk is kept at work."""

    def __init__(self, threads: ThreadPoolExecutor, handle: int) -> None:
        self._threads = threads
        self._handle = handle
        self._writing: asyncio.Future[None] | None = None
        self._syncing: asyncio.Future[None] | None = None
        self._unsynced = 0

    async def write(self, work: Callable[[], None], size: int) -> None:
        """Begin a write once the one before has ended. Raises what that one raised."""
        loop = asyncio.get_running_loop()
        if self._writing:
            await asyncio.shield(self._writing)
        self._writing = loop.run_in_executor(self._threads, work)
        self._unsynced += size
        if self._unsynced >= SYNC and (self._syncing is None or self._syncing.done()):
            self._unsynced = 0
            self._syncing = loop.run_in_executor(self._threads, os.fdatasync, self._handle)

    async def settle(self) -> None:
        """Wait for everything begun. Raises what went wrong."""
        for begun in (self._writing, self._syncing):
            if begun:
                await asyncio.shield(begun)


def sync(path: Path) -> None:
    """Make a file's content durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
