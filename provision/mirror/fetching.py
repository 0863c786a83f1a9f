"""One copy of a file from outside the site into its mirror."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from provision.mirror import transfer
from provision.mirror.client import File, Mirror
from provision.mirror.errors import MirrorUnreachable, SourceFailed, UnknownFile
from provision.mirror.transfer import Progress, silent
from provision.mirror.wire import RANGE_UNUSABLE

_TIMES = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=120)


async def fetch(
    mirror: Mirror, url: str, wanted: File, folder: Path, *, progress: Progress = silent
) -> tuple[File, bool]:
    """Bring `url` into the mirror under the digest and name of `wanted`; say whether it had to be fetched.

    What the mirror has already is only named. `folder` keeps what a broken attempt has got. Proxies are
    taken from the environment. Raises SourceFailed, DigestMismatch, OSError and the mirror's errors.
    """
    name = wanted.names[0] if wanted.names else ""
    try:
        there = await mirror.look_up(wanted.sha256)
    except UnknownFile:
        pass
    else:
        if name:
            await mirror.point(name, wanted.sha256)
        return File(there.sha256, there.size, wanted.names), False
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / wanted.sha256

    async def refuse(answer: aiohttp.ClientResponse) -> None:
        if answer.status >= 400 and answer.status != RANGE_UNUSABLE:
            raise SourceFailed(url, f"it was answered with HTTP status {answer.status}")

    async with aiohttp.ClientSession(timeout=_TIMES, trust_env=True, raise_for_status=refuse) as session:
        try:
            await transfer.fetch(session, url, part, wanted.sha256, progress)
        except MirrorUnreachable as error:
            raise SourceFailed(url, "it does not answer, or broke off") from error
    try:
        return await mirror.put(part, name), True
    finally:
        part.unlink(missing_ok=True)
