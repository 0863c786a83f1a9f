"""Uploads that are cut, resumed, raced and killed: what is served is never half of anything."""

from __future__ import annotations

import asyncio
import io
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import aiotus
import pytest

from provision.mirror.client import Mirror
from provision.mirror.errors import MirrorError, MirrorFull
from tests.contract.mirror.bench import TOKEN, Served, serving, sha256

pytestmark = pytest.mark.timeout(180)
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TUS = {**BEARER, "Tus-Resumable": "1.0.0"}


def b64(text: str) -> str:
    return aiotus.creation.encode_metadata({"x": text.encode()}).partition(" ")[2]


async def begin(session: aiohttp.ClientSession, url: str, data: bytes, name: str = "") -> str:
    metadata = f"sha256 {b64(sha256(data))}" + (f",filename {b64(name)}" if name else "")
    headers = {**TUS, "Upload-Length": str(len(data)), "Upload-Metadata": metadata}
    async with session.post(f"{url}/uploads", headers=headers) as answer:
        assert answer.status == 201, await answer.text()
        return answer.headers["Location"]


async def offset(session: aiohttp.ClientSession, upload: str) -> int:
    async with session.head(upload, headers=TUS) as answer:
        return int(answer.headers["Upload-Offset"])


async def send_and_die(
    session: aiohttp.ClientSession, upload: str, data: bytes, start: int, stop: int
) -> None:
    """Promise everything from `start`, send up to `stop`, and cut the connection."""

    async def body() -> AsyncIterator[bytes]:
        for at in range(start, stop, 65536):
            yield data[at : min(at + 65536, stop)]
        raise ConnectionAbortedError  # the connection ends in the middle of the body

    headers = {
        **TUS,
        "Content-Type": "application/offset+octet-stream",
        "Upload-Offset": str(start),
        "Content-Length": str(len(data) - start),
    }
    with suppress(aiohttp.ClientError, ConnectionError):
        async with session.patch(upload, headers=headers, data=body()):
            pass


async def until_idle(session: aiohttp.ClientSession, url: str, data: bytes) -> None:
    """Wait until the service has noticed that the connection was cut."""
    async with asyncio.timeout(60):
        while True:
            async with session.get(f"{url}/uploads?sha256={sha256(data)}", headers=TUS) as answer:
                if (await answer.json())["uploads"]:
                    return
            await asyncio.sleep(0.02)


async def test_an_upload_cut_half_way_goes_on_where_it_was(
    ana: Mirror, mirror: Served, tmp_path: Path
) -> None:
    data = os.urandom(8 << 20)
    (tmp_path / "f").write_bytes(data)
    async with aiohttp.ClientSession() as session:
        upload = await begin(session, mirror.url, data, "f")
        await send_and_die(session, upload, data, 0, len(data) // 2)
        await until_idle(session, mirror.url, data)
        here = await offset(session, upload)
        assert len(data) // 4 < here <= len(data) // 2
        async with session.get(f"{mirror.url}/files/f") as answer:
            assert answer.status == 404
    sent: list[int] = []
    await ana.put(tmp_path / "f", "f", progress=lambda done, _: sent.append(done))
    assert min(sent) > here  # what had arrived was not sent again
    await ana.get("f", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data


async def test_a_service_killed_half_way_goes_on_where_it_was(mirror: Served) -> None:
    data = os.urandom(4 << 20)
    async with aiohttp.ClientSession() as session:
        upload = await begin(session, mirror.url, data, "f")
        await send_and_die(session, upload, data, 0, 3 << 20)
        await until_idle(session, mirror.url, data)
        here = await offset(session, upload)
        assert here > 0
        await asyncio.to_thread(mirror.kill)
        await asyncio.to_thread(mirror.start)
        assert await offset(session, upload) == here
        headers = {**TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(here)}
        async with session.patch(upload, headers=headers, data=io.BytesIO(data[here:])) as answer:
            assert answer.status == 204
        async with session.get(f"{mirror.url}/files/f") as answer:
            assert await answer.read() == data


async def test_a_dead_connection_does_not_hold_an_upload(mirror: Served) -> None:
    """The sender comes back while the service still waits for its old connection."""
    data = os.urandom(6 << 20)
    gone = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield data[: 4 << 20]
        await gone.wait()

    async with aiohttp.ClientSession() as session:
        upload = await begin(session, mirror.url, data, "f")
        headers = {**TUS, "Content-Type": "application/offset+octet-stream", "Content-Length": str(len(data))}

        async def old() -> int:
            async with session.patch(
                upload, headers={**headers, "Upload-Offset": "0"}, data=stuck()
            ) as answer:
                return answer.status

        first = asyncio.create_task(old())
        await until_offset_at_least(session, upload, 1)
        before = await offset(session, upload)
        headers["Content-Length"] = str(len(data) - before)
        headers["Upload-Offset"] = str(before)
        async with session.patch(upload, headers=headers, data=io.BytesIO(data[before:])) as answer:
            # What the old connection still had in hand was kept: then the offset has moved on.
            status = answer.status
        if status == 409:
            before = await offset(session, upload)
            headers["Content-Length"] = str(len(data) - before)
            headers["Upload-Offset"] = str(before)
            async with session.patch(upload, headers=headers, data=io.BytesIO(data[before:])) as answer:
                status = answer.status
        assert status == 204
        gone.set()
        assert await first == 409
        async with session.get(f"{mirror.url}/files/f") as answer:
            assert await answer.read() == data


async def until_offset_at_least(session: aiohttp.ClientSession, upload: str, wanted: int) -> None:
    async with asyncio.timeout(60):
        while await offset(session, upload) < wanted:
            await asyncio.sleep(0.02)


async def test_another_tus_client_is_served_too(mirror: Served) -> None:
    data = os.urandom(3_000_000)
    metadata: dict[str, bytes | None] = {"sha256": sha256(data).encode(), "filename": b"by-aiotus"}
    location = await aiotus.upload(
        f"{mirror.url}/uploads", io.BytesIO(data), metadata, headers=BEARER, chunksize=500_000
    )
    assert location is not None
    async with aiohttp.ClientSession() as session, session.get(f"{mirror.url}/files/by-aiotus") as answer:
        assert await answer.read() == data


async def test_others_uploads_are_not_there(mirror: Served) -> None:
    async with aiohttp.ClientSession() as session:
        upload = await begin(session, mirror.url, b"x" * 10)
        headers = {**TUS, "Authorization": "Bearer open-barley"}
        async with session.head(upload, headers=headers) as answer:
            assert answer.status == 404
        async with session.delete(upload, headers=TUS) as answer:
            assert answer.status == 204
        async with session.head(upload, headers=TUS) as answer:
            assert answer.status == 404


@pytest.mark.lab
async def test_a_full_disk_refuses_before_writing_and_serves_what_it_has(
    small_disk: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(os.urandom(10 << 20))
    new.write_bytes(os.urandom(20 << 20))
    with serving(tmp_path, small_disk / "root", f"reserve_bytes: {4 << 20}\n") as served:
        async with served.client() as client:
            await client.put(old, "image")
            with pytest.raises(MirrorFull) as refused:
                await client.put(new, "image", replace=True)
            assert "free beside the reserve" in refused.value.detail
            assert list((small_disk / "root" / "partial").iterdir()) == []
            await client.get("image", tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == old.read_bytes()
            # Two that fit alone, but not together: what was promised to the first counts.
            first, second = os.urandom(12 << 20), os.urandom(12 << 20)
            async with aiohttp.ClientSession() as session:
                upload = await begin(session, served.url, first)
                headers = {**TUS, "Upload-Length": str(len(second))}
                headers["Upload-Metadata"] = f"sha256 {b64(sha256(second))}"
                async with session.post(f"{served.url}/uploads", headers=headers) as answer:
                    assert answer.status == 507
                # The disk fills from elsewhere in the middle of an upload.
                await send_and_die(session, upload, first, 0, 1 << 20)
                (small_disk / "other").write_bytes(b"x" * (8 << 20))
                (tmp_path / "first").write_bytes(first)
                with pytest.raises(MirrorFull):
                    await client.put(tmp_path / "first", "first")
                (small_disk / "other").unlink()
                await client.put(tmp_path / "first", "first")
            await client.get("first", tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == first


class Storm:
    """A hundred uploads that are cut, a service that is killed, and a reader who compares all the time."""

    def __init__(self, mirror: Served, folder: Path) -> None:
        self.mirror = mirror
        self.folder = folder
        self.chance = random.Random(20261130)
        self.files = {f"f{number}": self.chance.randbytes(self._size()) for number in range(100)}
        for name, data in self.files.items():
            (folder / name).write_bytes(data)
        self.cut = self.kills = self.reads = self.wrong = 0
        self.over = asyncio.Event()

    def _size(self) -> int:
        return self.chance.randrange(2, 1_500_000)

    async def read(self) -> None:
        async with aiohttp.ClientSession() as session:
            while not self.over.is_set():
                name = self.chance.choice(list(self.files))
                with suppress(aiohttp.ClientError):
                    async with session.get(f"{self.mirror.url}/files/{name}") as answer:
                        if answer.status == 200:
                            self.reads += 1
                            self.wrong += await answer.read() != self.files[name]
                await asyncio.sleep(0.005)

    async def upload(self, name: str) -> None:
        data = self.files[name]
        async with aiohttp.ClientSession() as session:
            cuts = self.chance.randrange(1, 3)
            while cuts:
                # While the service is down, nginx answers 502.
                with suppress(aiohttp.ClientError, KeyError, AssertionError):
                    one = await begin(session, self.mirror.url, data, name)
                    await send_and_die(session, one, data, 0, self.chance.randrange(len(data)))
                    cuts -= 1
                    self.cut += 1
                await asyncio.sleep(0.05)
        async with self.mirror.client() as client:
            arrived = False
            while not arrived:
                with suppress(MirrorError):
                    await client.put(self.folder / name, name)
                    arrived = True

    async def kill(self) -> None:
        for after in (20, 60, 100):
            while self.cut < after:
                await asyncio.sleep(0.02)
            await asyncio.to_thread(self.mirror.kill, signal.SIGKILL)
            self.kills += 1
            await asyncio.to_thread(self.mirror.start)


@pytest.mark.timeout(180)
async def test_a_hundred_uploads_with_kills_serve_nothing_corrupt(
    mirror: Served, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    storm = Storm(mirror, tmp_path)
    reading = asyncio.create_task(storm.read())
    await asyncio.gather(storm.kill(), *(storm.upload(name) for name in storm.files))
    storm.over.set()
    await reading
    async with mirror.client() as client, aiohttp.ClientSession() as session:
        assert [sha for sha, good in [item async for item in client.verify()] if not good] == []
        for name, data in storm.files.items():
            async with session.get(f"{mirror.url}/files/{name}") as answer:
                storm.wrong += await answer.read() != data
    seen = f"100 uploads, {storm.cut} cut, {storm.kills} kills, {storm.reads} reads, {storm.wrong} corrupt"
    record_property("seen", seen)
    sys.stderr.write(f"{seen}\n")
    assert storm.wrong == 0
    assert storm.cut >= 100
