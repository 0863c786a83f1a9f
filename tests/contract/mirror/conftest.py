from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from provision.mirror.client import Mirror
from tests.contract.mirror.bench import Served, serving


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path, tmp_path / "root", "reserve_bytes: 0\n") as served:
        yield served


@pytest.fixture
async def ana(mirror: Served) -> AsyncIterator[Mirror]:
    async with mirror.client() as client:
        yield client


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MiB of its own."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root to mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "muster-test", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
