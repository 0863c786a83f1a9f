"""Uploads under way: bytes in a file, and beside it what they are to become.

How much has arrived is the length of the file itself, so that a service that was killed at any
moment goes on with exactly what it has.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from provision.mirror import layout
from provision.mirror.refusals import Refusal, Why
from provision.mirror.store import Store

if TYPE_CHECKING:
    from hashlib import _Hash

T = TypeVar("T")

_BATCH = 2 << 20  # bytes handed to a thread at once: hashing and writing run beside receiving
_SYNC = 32 << 20  # bytes after which the disk is made to begin, so that little is left at the end
_THREADS = 8
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Promise:
    """What a finished upload is to become. An empty name publishes under the digest only."""

    length: int
    sha256: str
    name: str
    replace: bool
    by: str
    created: float


@dataclass(slots=True)
class _Busy:
    """The request that writes to an upload just now."""

    task: asyncio.Task[object]
    done: asyncio.Event
    taken_over: bool = False
    finishing: bool = False


class _Disk:
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
        if self._unsynced >= _SYNC and (self._syncing is None or self._syncing.done()):
            self._unsynced = 0
            self._syncing = loop.run_in_executor(self._threads, os.fdatasync, self._handle)

    async def settle(self) -> None:
        """Wait for everything begun. Raises what went wrong."""
        for begun in (self._writing, self._syncing):
            if begun:
                await asyncio.shield(begun)


class Uploads:
    """All uploads of one mirror."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._folder = store.root / "partial"
        self._threads = ThreadPoolExecutor(_THREADS, "mirror")
        self._publishing = asyncio.Lock()
        self._busy: dict[str, _Busy] = {}
        self._hashes: dict[str, tuple[int, _Hash]] = {}
        self._known = self._load()

    def close(self) -> None:
        """Wait for writes that have begun."""
        self._threads.shutdown()

    @property
    def publishing(self) -> asyncio.Lock:
        """The lock around everything that changes content, names or pins."""
        return self._publishing

    def promised(self, by: str = "") -> int:
        """Return how many bytes of all uploads, or of those of `by`, have still to come."""
        return sum(
            promise.length - self.offset(upload)
            for upload, promise in self._known.items()
            if by in {"", promise.by}
        )

    def count(self) -> int:
        """Return how many uploads are under way."""
        return len(self._known)

    async def create(self, promise: Promise) -> str:
        """Begin an upload once it is sure to fit, and return its id. Raises Refusal."""
        async with self._publishing:
            if promise.name:
                self._store.check_name(promise.name, promise.sha256, replace=promise.replace)
            if not self._store.has(promise.sha256):
                self._store.make_room(promise.length, promise.by, self.promised(), self.promised(promise.by))
            upload = secrets.token_hex(16)
            self._data(upload).touch(mode=0o600)
            about = json.dumps(asdict(promise)).encode()
            self._known[upload] = promise
        await self._in_thread(lambda: layout.write(self._about(upload), about))
        return upload

    def promise(self, upload: str, by: str) -> Promise:
        """Return what an upload of `by` is to become. Raises Refusal: others' uploads are not there."""
        promise = self._known.get(upload)
        if promise is None or promise.by != by:
            raise Refusal(Why.UNKNOWN, "there is no such upload of yours")
        return promise

    def offset(self, upload: str) -> int:
        """Return how many bytes have arrived and are on their way to the disk."""
        with suppress(FileNotFoundError):
            return self._data(upload).stat().st_size
        return 0

    def idle(self, sha256: str, by: str) -> Sequence[str]:
        """Return the uploads of this content that nobody writes to, the furthest first."""
        mine = [
            upload
            for upload, promise in self._known.items()
            if promise.sha256 == sha256 and promise.by == by and upload not in self._busy
        ]
        return sorted(mine, key=self.offset, reverse=True)

    async def append(self, upload: str, offset: int, chunks: AsyncIterator[bytes]) -> int:
        """Write what arrives, publish when it is complete, and return the new offset.

        What has arrived stays, also when the sender goes away in the middle; only what is complete and
        has another digest is thrown away. Raises Refusal, OSError, and what `chunks` raises.
        """
        async with self._writing(upload) as busy:
            promise = self._known[upload]
            here = self.offset(upload)
            if offset != here:
                raise Refusal(Why.OFFSET, f"{here} bytes have arrived")
            self._store.make_room(0, promise.by, self.promised())
            try:
                await self._receive(upload, promise.length - here, chunks)
            except asyncio.CancelledError:
                if not busy.taken_over:
                    raise
                raise Refusal(Why.TAKEN_OVER, "another request goes on with this upload") from None
            here = self.offset(upload)
            if here == promise.length:
                busy.finishing = True
                await asyncio.shield(self._finish(upload, promise))
            return here

    async def _finish(self, upload: str, promise: Promise) -> None:
        """Publish what is complete, or throw it away and raise Refusal where its digest is another."""
        data = self._data(upload)
        got = (await self._in_thread(lambda: self._hash(upload))).hexdigest()
        if got != promise.sha256:
            await self.discard(upload)
            raise Refusal(Why.DIGEST, f"what arrived has sha256 {got}, promised was {promise.sha256}")
        # The disk is made to take the bytes before others have to wait for us.
        await self._in_thread(lambda: _sync(data))
        try:
            async with self._publishing:
                await self._in_thread(lambda: self._publish(data, promise))
        finally:
            await self.discard(upload)

    async def give_up(self, upload: str) -> None:
        """Stop whoever writes to an upload, and forget it."""
        async with self._writing(upload):
            await self.discard(upload)

    async def discard(self, upload: str) -> None:
        """Forget an upload and its bytes."""
        self._known.pop(upload, None)
        self._hashes.pop(upload, None)
        self._data(upload).unlink(missing_ok=True)
        self._about(upload).unlink(missing_ok=True)

    async def expire(self, days: float) -> int:
        """Discard uploads to which nothing was added for `days`; return how many."""
        oldest = self._clock() - days * _DAY_S
        old = [
            upload
            for upload in self._known
            if upload not in self._busy and self._data(upload).stat().st_mtime <= oldest
        ]
        for upload in old:
            await self.discard(upload)
        return len(old)

    def _publish(self, data: Path, promise: Promise) -> None:
        if promise.name:
            self._store.check_name(promise.name, promise.sha256, replace=promise.replace)
        self._store.publish(data, promise.sha256, promise.by)
        if promise.name:
            self._store.point(promise.name, promise.sha256, replace=promise.replace)

    async def _receive(self, upload: str, room: int, chunks: AsyncIterator[bytes]) -> None:
        """Receive into memory while a thread hashes and writes what came before."""
        running = await self._in_thread(lambda: self._hash(upload))
        handle = os.open(self._data(upload), os.O_WRONLY | os.O_APPEND)
        batch: list[bytes] = []
        size = 0
        disk = _Disk(self._threads, handle)
        try:
            async for chunk in chunks:
                room -= len(chunk)
                if room < 0:
                    raise Refusal(Why.BAD_REQUEST, "more bytes arrive than were promised")
                batch.append(chunk)
                size += len(chunk)
                if size >= _BATCH:
                    await disk.write(self._writer(handle, upload, running, batch), size)
                    batch, size = [], 0
        finally:
            # Also a sender that went away, or a cancelled request, leaves what it has sent.
            try:
                if batch and room >= 0:
                    await disk.write(self._writer(handle, upload, running, batch), size)
                await disk.settle()
            finally:
                os.close(handle)

    def _writer(self, handle: int, upload: str, running: _Hash, batch: Sequence[bytes]) -> Callable[[], None]:
        def work() -> None:
            for chunk in batch:
                view = memoryview(chunk)
                while view:
                    written = os.write(handle, view)
                    running.update(view[:written])
                    view = view[written:]
                    self._hashes[upload] = (self._hashes[upload][0] + written, running)

        return work

    def _hash(self, upload: str) -> _Hash:
        """Return the running hash of what has arrived; read again where we did not see it arrive."""
        size = self.offset(upload)
        seen, running = self._hashes.get(upload, (-1, hashlib.sha256()))
        if seen != size:
            running = hashlib.sha256()
            with self._data(upload).open("rb") as file:
                while block := file.read(_BATCH):
                    running.update(block)
            self._hashes[upload] = (size, running)
        return running

    @asynccontextmanager
    async def _writing(self, upload: str) -> AsyncIterator[_Busy]:
        """Be the only one who writes to an upload.

        Whoever wrote until now is sent away: it is most likely a connection that died without a word,
        and its sender is the one who asks now.
        """
        while (before := self._busy.get(upload)) is not None:
            if not before.finishing and not before.taken_over:
                before.taken_over = True
                before.task.cancel()
            await before.done.wait()
        if upload not in self._known:
            raise Refusal(Why.UNKNOWN, "the upload has ended meanwhile")
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("uploads are written to in tasks")
        busy = self._busy[upload] = _Busy(task, asyncio.Event())
        try:
            yield busy
        finally:
            del self._busy[upload]
            busy.done.set()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _data(self, upload: str) -> Path:
        return self._folder / f"{upload}.data"

    def _about(self, upload: str) -> Path:
        return self._folder / f"{upload}.json"

    def _load(self) -> dict[str, Promise]:
        known = {}
        for path in self._folder.glob("*.json"):
            with suppress(OSError, ValueError, TypeError):
                if self._data(path.stem).exists():
                    known[path.stem] = Promise(**json.loads(path.read_bytes()))
        for path in self._folder.glob("*.data"):
            if path.stem not in known:
                path.unlink()  # begun, but nobody was told of it
        return known


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
