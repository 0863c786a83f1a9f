from __future__ import annotations

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
