"""Sending and fetching one file so that what has arrived is never sent twice."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import aiohttp
import yarl
from aiotus import core, creation

from provision.mirror.errors import DigestMismatch, UnknownFile
from provision.mirror.wire import RANGE_UNUSABLE, again

_READ = 1 << 20
Progress = Callable[[int, int], None]


def silent(_done: int, _total: int) -> None:
    """Tell nobody how far a transfer has come."""


async def begin(
    session: aiohttp.ClientSession, endpoint: str, source: BinaryIO, metadata: dict[str, bytes | None]
) -> str:
    """Begin an upload and return its path. Raises aiohttp.ClientError, ProtocolError and refusals."""
    made = await creation.create(session, yarl.URL(endpoint), source, metadata)
    return made.path


async def send(session: aiohttp.ClientSession, url: str, path: Path, progress: Progress) -> None:
    """Send the rest of an upload; where the upload is gone, whoever called looks what became of it."""
    size = path.stat().st_size
    upload = yarl.URL(url)
    come = 0

    async def rest() -> None:
        nonlocal come
        come = await core.offset(session, upload)
        headers = {
            "Content-Length": str(size - come),
            "Content-Type": "application/offset+octet-stream",
            "Tus-Resumable": "1.0.0",
            "Upload-Offset": str(come),
        }
        # One request for all of it: whatever arrives before a cut stays there.
        async with session.patch(upload, headers=headers, data=_read(path, come, size, progress)):
            come = size

    with suppress(UnknownFile):
        await again(rest, lambda: come, url)


async def fetch(
    session: aiohttp.ClientSession, url: str, part: Path, sha256: str, progress: Progress = silent
) -> None:
    """Fetch `url` into `part`, going on with what is there, and verify it; a wrong file is removed.

    Raises DigestMismatch, MirrorUnreachable, OSError.
    """
    await again(lambda: _fetch_rest(session, url, part, progress), lambda: _size(part), url)
    got = await asyncio.to_thread(digest, part)
    if got != sha256:
        part.unlink(missing_ok=True)
        raise DigestMismatch(url, f"what arrived has sha256 {got}, promised was {sha256}")


def digest(path: Path) -> str:
    """Return the sha256 of a file. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


async def _fetch_rest(session: aiohttp.ClientSession, url: str, part: Path, progress: Progress) -> None:
    have = _size(part)
    headers = {"Range": f"bytes={have}-"} if have else {}
    async with session.get(url, headers=headers) as answer:
        if answer.status == RANGE_UNUSABLE:
            return  # nothing is left, or it is another file: the digest decides
        if answer.status != 206:
            have = 0
        total = have + (answer.content_length or 0)
        with part.open("ab" if have else "wb") as file:
            async for chunk in answer.content.iter_chunked(_READ):
                file.write(chunk)
                have += len(chunk)
                progress(have, max(total, have))
            file.flush()
            os.fsync(file.fileno())


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


async def _read(path: Path, start: int, size: int, progress: Progress) -> AsyncIterator[bytes]:
    """Yield a file from `start`; the next block is read while one is sent."""
    with path.open("rb") as source:
        source.seek(start)
        reading = asyncio.ensure_future(asyncio.to_thread(source.read, _READ))
        try:
            while block := await reading:
                reading = asyncio.ensure_future(asyncio.to_thread(source.read, _READ))
                yield block
                start += len(block)
                progress(start, size)
        finally:
            await asyncio.wait([reading])
