"""What was received is published when the disk has it, and not before."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from provision.mirror import uploads
from provision.mirror.promise import Promise
from provision.mirror.store import Limits, Store
from provision.mirror.uploads import Uploads

DATA = b"driver"


async def arriving() -> AsyncIterator[bytes]:
    yield DATA


@pytest.mark.parametrize("broken", [False, True])
async def test_what_the_disk_refused_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    def sync(path: Path) -> None:
        raise OSError(5, "Input/output error")

    store = Store(tmp_path, Limits(reserve=0))
    received = Uploads(store)
    sha256 = hashlib.sha256(DATA).hexdigest()
    upload = await received.create(Promise(len(DATA), sha256, "f", replace=False, by="ana", created=0.0))
    if broken:
        monkeypatch.setattr(uploads, "sync", sync)
        with pytest.raises(OSError, match="Input/output"):
            await received.append(upload, 0, arriving())
    else:
        await received.append(upload, 0, arriving())
    assert store.has(sha256) is not broken
    assert store.resolve("f") == (None if broken else sha256)
    received.close()
    store.close()
