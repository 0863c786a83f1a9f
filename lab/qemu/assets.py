"""The cache of boot files: made once a recipe, shared by checkouts and by labs that start at once."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lab.errors import Refused
from lab.nodes.sources import Archive, machine_archive
from lab.qemu.recipe import Assets, make_assets, recipe_key

log = logging.getLogger(__name__)

Maker = Callable[[Archive, Path], Awaitable[None]]

_LOCK_POLL_S = 0.2


async def prepare_assets(cache: Path, *, archive: Archive | None = None, make: Maker = make_assets) -> Assets:
    """Return the cached boot files, making them first where they are missing.

    Making needs root and a package archive; using needs neither. A making that was killed leaves
    nothing that looks finished. Raises AssetsNotMade, NoService, Refused.
    """
    archive = archive or machine_archive()
    target = cache / f"qemu-{recipe_key(archive)}"
    if target.is_dir():
        return Assets(target)
    if make is make_assets and os.geteuid() != 0:
        raise Refused(
            str(target),
            "making the QEMU nodes' disk image needs root, this once",
            follow="start the lab once as root; later starts use the cache",
        )
    cache.mkdir(parents=True, exist_ok=True)
    async with _locked(cache / "qemu.lock"):
        if not target.is_dir():
            await _make(archive, target, make)
    return Assets(target)


async def _make(archive: Archive, target: Path, make: Maker) -> None:
    log.info("making the QEMU nodes' boot files %s (once; later starts reuse them)", target)
    for leftover in target.parent.glob("qemu-*.part"):
        shutil.rmtree(leftover)
    work = target.with_name(f"{target.name}.part")
    work.mkdir()
    try:
        await make(archive, work)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Hold the file's lock; waits without blocking the loop, and lets go when this process dies."""
    with path.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_S)
            else:
                break
        yield
