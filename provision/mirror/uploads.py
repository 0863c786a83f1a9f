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
from provision.mirror.connections import Connection
from provision.mirror.disk import Disk, sync
from provision.mirror.handover import HandOver
from provision.mirror.promise import Promise, UnderWay
from provision.mirror.refusals import Refusal, Why
from provision.mirror.store import Store

if TYPE_CHECKING:
    from hashlib import _Hash

T = TypeVar("T")

_BATCH = 2 << 20  # bytes handed to a thread at once: hashing and writing run beside receiving
_THREADS = 8
_DAY_S = 86400.0


@dataclass(slots=True)
class _Busy:
    """The request that writes to an upload just now."""

    task: asyncio.Task[object]
    done: asyncio.Event
    taken_over: bool = False
    finishing: bool = False


class Uploads:
    """All uploads of one mirror."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._folder = store.root / "partial"
        self._handover = HandOver(store.root / "incoming")
        self._threads = ThreadPoolExecutor(_THREADS, "mirror")
        self._publishing = asyncio.Lock()
        self._busy: dict[str, _Busy] = {}
        self._hashes: dict[str, tuple[int, _Hash]] = {}
        self._known = self._load()

    def close(self) -> None:
        """Wait for writes that have begun."""
        self._threads.shutdown()
        self._handover.close()

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
        return len(self._known) + len(self._handover.promises())

    async def create(self, promise: Promise) -> str:
        """Begin an upload once it is sure to fit, and return its id. Raises Refusal."""
        async with self._publishing:
            self._check(promise)
            upload = secrets.token_hex(16)
            self._data(upload).touch(mode=0o600)
            about = json.dumps(asdict(promise)).encode()
            self._known[upload] = promise
        await self._in_thread(lambda: layout.write(self._about(upload), about))
        return upload

    async def admit(self, ticket: str, promise: Promise, connection: Connection) -> None:
        """Let nginx write the body of a PUT, if it is sure to fit. Raises Refusal."""
        async with self._publishing:
            self._check(promise)
            # nginx writes it in any case, also where the content is there already.
            self._fit(lambda under_way: self._store.keep_reserve(promise.length, under_way), promise.by)
            self._handover.admit(ticket, promise, connection)

    async def refusal(self, ticket: str, promise: Promise) -> Refusal:
        """Return why a PUT was not let in, or what befell it while nginx wrote its body."""
        if self._handover.forget(ticket):
            if self._store.full():
                return Refusal(Why.NO_ROOM, "the disk is full")
            return Refusal(Why.NOT_WRITTEN, "nginx could not write the body; its error log says why")
        try:
            async with self._publishing:
                self._check(promise)
        except Refusal as refusal:
            return refusal
        return Refusal(Why.AGAIN, "it did not fit a moment ago and does now; send it again")

    async def adopt(self, ticket: str, promise: Promise, body: Path) -> None:
        """Publish a body that nginx wrote to a file. Raises Refusal, OSError."""
        await asyncio.shield(self._adopt(ticket, promise, body))

    def forget(self, ticket: str) -> None:
        """Let go of a PUT that nginx was let in with, and that ends in another way."""
        self._handover.forget(ticket)

    def forget_gone(self) -> bool:
        """Let go of PUTs whose client is no longer there; say whether there were any."""
        return self._handover.forget_gone()

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
            self._fit(lambda under_way: self._store.keep_reserve(0, under_way), promise.by)
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

    async def _adopt(self, ticket: str, promise: Promise, body: Path) -> None:
        upload = secrets.token_hex(16)
        try:
            inode = self._handover.take(ticket, promise, body, self._data(upload))
            followed = await self._in_thread(lambda: self._handover.follower.release(inode))
            if followed:
                self._hashes[upload] = followed.seen, followed.running
            await self._finish(upload, promise)
        finally:
            await self.discard(upload)
            self._handover.forget(ticket)

    async def _finish(self, upload: str, promise: Promise) -> None:
        """Publish what is complete, or throw it away and raise Refusal where its digest is another."""
        data = self._data(upload)
        # The disk takes the bytes while the last are hashed, and before others have to wait for us.
        running, _ = await asyncio.gather(
            self._in_thread(lambda: self._hash(upload)), self._in_thread(lambda: sync(data))
        )
        got = running.hexdigest()
        if got != promise.sha256:
            await self.discard(upload)
            raise Refusal(Why.DIGEST, f"what arrived has sha256 {got}, promised was {promise.sha256}")
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

    def _check(self, promise: Promise) -> None:
        """Raise Refusal where an upload may not begin."""
        if promise.name:
            self._store.check_name(promise.name, promise.sha256, replace=promise.replace)
        if not self._store.has(promise.sha256):
            size, by = promise.length, promise.by
            self._fit(lambda under_way: self._store.make_room(size, by, under_way), by)

    def _fit(self, check: Callable[[UnderWay], None], by: str) -> None:
        """Raise what `check` raises, unless it is for the sake of PUTs whose client went away."""
        try:
            check(self._under_way(by))
        except Refusal:
            if not self.forget_gone():
                raise
            check(self._under_way(by))

    def _under_way(self, by: str) -> UnderWay:
        put = [promise for promise in self._handover.promises() if not self._store.has(promise.sha256)]
        return UnderWay(
            disk=self.promised() + self._handover.to_come(),
            quota=self.promised() + sum(promise.length for promise in put),
            quota_each=self.promised(by) + sum(promise.length for promise in put if promise.by == by),
        )

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
        disk = Disk(self._threads, handle)
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
        """Return the running hash of what has arrived; what we did not see arrive is read."""
        size = self.offset(upload)
        seen, running = self._hashes.get(upload, (0, hashlib.sha256()))
        if seen > size:
            seen, running = 0, hashlib.sha256()
        with self._data(upload).open("rb") as file:
            file.seek(seen)
            while block := file.read(_BATCH):
                running.update(block)
                seen += len(block)
        self._hashes[upload] = (seen, running)
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
