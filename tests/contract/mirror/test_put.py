"""A plain PUT through nginx: nginx writes, the service vouches, and a client cannot come between them."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from provision.mirror.disk import STEP
from tests.contract.mirror.bench import (
    OTHER,
    TOKEN,
    Served,
    free_port,
    serving,
    sha256,
    wait_for,
    write_config,
)

pytestmark = pytest.mark.timeout(120)
MIB = 1 << 20


class Line:
    """One connection, on which a request is sent in pieces."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def to(cls, mirror: Served) -> AsyncIterator[Line]:
        line = cls(*await asyncio.open_connection("127.0.0.1", int(mirror.url.rpartition(":")[2])))
        try:
            yield line
        finally:
            await line.cut()

    async def begin(self, path: str, data: bytes, *, method: str = "PUT", **more: str) -> None:
        """Send the head of a PUT that promises `data`."""
        headers = {
            "Host": "mirror",
            "Authorization": f"Bearer {TOKEN}",
            "X-Sha256": sha256(data),
            "Content-Length": str(len(data)),
            **{key.replace("_", "-"): value for key, value in more.items()},
        }
        lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items() if value)
        await self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode())

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> tuple[int, dict[str, object], dict[str, str]]:
        """Return status, body and headers of the next answer."""
        head = "HTTP/1.1 100"
        while head.startswith("HTTP/1.1 100"):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        json_body = headers.get("content-type", "").startswith("application/json")
        return int(first.split()[1]), json.loads(body) if json_body else {}, headers

    async def cut(self) -> None:
        """End the connection at once, whatever is on its way."""
        self._writer.transport.abort()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


async def put(mirror: Served, name: str, data: bytes, **more: str) -> tuple[int, dict[str, object]]:
    async with Line.to(mirror) as line:
        await line.begin(f"/api/files/{name}", data, **more)
        await line.send(data)
        status, body, _ = await line.answer()
    return status, body


async def got(mirror: Served, name: str) -> bytes | None:
    async with aiohttp.ClientSession() as session, session.get(f"{mirror.url}/files/{name}") as answer:
        return await answer.read() if answer.status == 200 else None


async def held(mirror: Served) -> list[str]:
    async with aiohttp.ClientSession() as session, session.get(f"{mirror.url}/index.json") as answer:
        return [file["sha256"] for file in (await answer.json())["files"]]


def complaints(mirror: Served) -> list[str]:
    """What nginx logged about a PUT; while the service starts, it complains of that."""
    return [line for line in (mirror.folder / "nginx.err").read_text().splitlines() if '"PUT ' in line]


async def nothing_is_left(mirror: Served) -> None:
    await asyncio.to_thread(wait_for, lambda: not mirror.incoming, "nginx to remove its file")
    assert list((mirror.root / "partial").iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, 100_000, STEP + 3 * MIB + 5])
async def test_a_file_is_published_as_it_was_sent(mirror: Served, size: int) -> None:
    data = os.urandom(size)
    status, told = await put(mirror, "sub/f", data)
    assert (status, told) == (201, {"schema": 1, "name": "sub/f", "sha256": sha256(data), "size": size})
    assert await got(mirror, "sub/f") == data
    await nothing_is_left(mirror)
    found = (mirror.root / "sha256" / sha256(data)).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_nlink, found.st_uid) == (0o444, 1, os.geteuid())
    assert complaints(mirror) == []
    line = json.loads((mirror.folder / "writes.log").read_text().splitlines()[-1])
    assert (line["who"], line["method"], line["length"], line["status"]) == ("ana", "PUT", size, 201)
    assert (await put(mirror, "again", data))[0] == 201  # content that is there already


async def test_several_at_once_are_told_apart(mirror: Served) -> None:
    files = {f"f{number}": os.urandom(3 * MIB + number) for number in range(6)}
    done = await asyncio.gather(*(put(mirror, name, data) for name, data in files.items()))
    assert [status for status, _ in done] == [201] * len(files)
    assert [await got(mirror, name) for name in files] == list(files.values())


async def test_other_bytes_than_promised_are_thrown_away(mirror: Served) -> None:
    status, told = await put(mirror, "f", os.urandom(2 * MIB), X_Sha256="ab" * 32)
    assert (status, told["code"]) == (422, "digest")
    assert await held(mirror) == []
    await nothing_is_left(mirror)


async def test_a_body_that_is_cut_leaves_nothing(mirror: Served) -> None:
    data = os.urandom(4 * MIB)
    async with Line.to(mirror) as line:
        await line.begin("/api/files/f", data)
        await line.send(data[:-1])
        await asyncio.to_thread(wait_for, lambda: bool(mirror.incoming), "nginx to write")
    await nothing_is_left(mirror)
    assert await held(mirror) == []
    assert complaints(mirror) == []


@pytest.mark.parametrize(
    ("more", "path", "status", "code"),
    [
        ({"Authorization": "Bearer wrong"}, "/api/files/f", 401, "not-allowed"),
        ({"Authorization": ""}, "/api/files/f", 401, "not-allowed"),
        ({"X_Sha256": "xyz"}, "/api/files/f", 400, "bad-request"),
        ({"Content_Length": "", "Transfer_Encoding": "chunked"}, "/api/files/f", 400, "bad-request"),
        ({"Content_Length": str(MIB * 2)}, "/api/files/f", 413, "too-large"),
        ({}, "/api/files/.hidden", 400, "bad-request"),
        ({}, "/api/files/taken", 409, "name-taken"),
    ],
)
async def test_what_is_refused_is_refused_before_its_body(
    tmp_path: Path, more: dict[str, str], path: str, status: int, code: str
) -> None:
    with serving(tmp_path, tmp_path / "root", f"reserve_bytes: 0\nmax_file_bytes: {MIB}\n") as mirror:
        assert (await put(mirror, "taken", b"x"))[0] == 201
        async with Line.to(mirror) as line:
            await line.begin(path, b"never sent", Expect="100-continue", **more)
            got_status, told, headers = await line.answer()
            assert (got_status, told["code"]) == (status, code)
            assert headers["tus-resumable"] == "1.0.0"
            assert headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
            assert mirror.incoming == []
            assert list((tmp_path / "nginx-client_body").iterdir()) == []
            refused = json.loads((tmp_path / "writes.log").read_text().splitlines()[-1])
            assert (refused["method"], refused["status"]) == ("PUT", status)
            async with aiohttp.ClientSession() as session, session.get(f"{mirror.url}/metrics") as answer:
                assert f'refused_total{{code="{code}"}} 1\n' in await answer.text()


async def test_only_a_put_goes_there(mirror: Served) -> None:
    for method in ("GET", "POST", "DELETE"):
        async with Line.to(mirror) as line:
            await line.begin("/api/files/f", b"x", method=method)
            await line.send(b"x")
            assert (await line.answer())[0] == 405
    async with aiohttp.ClientSession() as session, session.get(f"{mirror.url}/.admission") as answer:
        assert answer.status == 403


async def test_what_is_under_way_counts_until_it_ends(tmp_path: Path) -> None:
    with serving(tmp_path, tmp_path / "root", f"reserve_bytes: 0\nquota_bytes: {10 * MIB}\n") as mirror:
        first, second = os.urandom(6 * MIB), os.urandom(5 * MIB)
        async with Line.to(mirror) as line:
            await line.begin("/api/files/first", first)
            await line.send(first[: 3 * MIB])
            await asyncio.to_thread(wait_for, lambda: bool(mirror.incoming), "nginx to write")
            assert (await put(mirror, "second", second))[1]["code"] == "quota"
        # nginx tells nobody of it, and the service sees it all the same.
        await nothing_is_left(mirror)
        assert (await put(mirror, "second", second))[0] == 201


async def test_a_client_cannot_hand_over_what_it_did_not_send(mirror: Served, tmp_path: Path) -> None:
    """Headers between nginx and the service mean nothing when a client sends them."""
    other = tmp_path / "secret"
    other.write_bytes(b"secret")
    forged = {
        "X_Body_Step": "take", "X_Body_File": str(other), "X_Body_Length": "6", "X_Body_Ticket": "1",
        "X_Body_From": "10.0.0.1 1 1",
    }  # fmt: skip
    assert (await put(mirror, "f", b"mine", **forged))[0] == 201
    assert await got(mirror, "f") == b"mine"
    assert (await put(mirror, "g", b"other!", **{**forged, "X_Sha256": sha256(b"secret")}))[0] == 422
    async with Line.to(mirror) as line:
        await line.begin(f"/api/names/g?sha256={sha256(b'secret')}", b"", **forged)
        assert (await line.answer())[0] in {400, 404}
    for path in ("/x/../api/files/h", "/api//files/h", "/%61pi/files/h"):
        async with Line.to(mirror) as line:
            await line.begin(path, b"other!", **forged)
            await line.send(b"other!")
            await line.answer()
    assert set(await held(mirror)) <= {sha256(b"mine"), sha256(b"other!")}
    assert other.read_bytes() == b"secret"


async def test_without_nginx_the_service_takes_bodies_itself_and_believes_no_headers(tmp_path: Path) -> None:
    port, other = free_port(), tmp_path / "secret"
    other.write_bytes(b"secret")
    write_config(tmp_path, tmp_path / "root", "reserve_bytes: 0\n")
    config = tmp_path / "mirror.yaml"
    alone = config.read_text().replace(f"unix:{tmp_path}/service.sock", f"127.0.0.1:{port}")
    config.write_text(alone)
    mirror = Served(tmp_path, tmp_path / "root", f"http://127.0.0.1:{port}")
    await asyncio.to_thread(mirror.start)
    try:
        for step in ("", "admit", "take", "explain"):
            data = os.urandom(3 * MIB)
            forged = {"X_Body_Step": step, "X_Body_File": str(other), "X_Body_Length": "6"}
            status, told = await put(mirror, f"f{step}", data, **forged)
            assert (status, told["sha256"]) == (201, sha256(data))
    finally:
        await asyncio.to_thread(mirror.close)


async def test_what_is_behind_a_refused_body_is_no_request(mirror: Served) -> None:
    inner = b"PUT /api/pins/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    async with Line.to(mirror) as line:
        await line.begin("/api/files/.hidden", inner)
        await line.send(inner)
        assert (await line.answer())[0] == 400
        # The connection goes on behind the body, or it is closed.
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await line.begin("/api/files/g", b"next")
            await line.send(b"next")
            assert (await line.answer())[0] == 201


async def test_left_overs_of_a_killed_nginx_go_when_the_service_starts(mirror: Served) -> None:
    data = os.urandom(4 * MIB)
    async with Line.to(mirror) as line:
        await line.begin("/api/files/f", data)
        await line.send(data[:-1])
        await asyncio.to_thread(wait_for, lambda: bool(mirror.incoming), "nginx to write")
        mirror.kill_workers()
        assert len(mirror.incoming) == 1
    await asyncio.to_thread(mirror.kill)
    await asyncio.to_thread(mirror.start)
    await nothing_is_left(mirror)
    assert await held(mirror) == []


async def test_a_service_that_was_not_asked_takes_nothing(mirror: Served) -> None:
    data = os.urandom(4 * MIB)
    async with Line.to(mirror) as line:
        await line.begin("/api/files/f", data)
        await line.send(data[:-1])
        await asyncio.to_thread(wait_for, lambda: bool(mirror.incoming), "nginx to write")
        await asyncio.to_thread(mirror.kill)
        await asyncio.to_thread(mirror.start)
        await line.send(data[-1:])
        status, told, _ = await line.answer()
        assert (status, told["code"]) == (503, "again")
    await nothing_is_left(mirror)
    assert (await put(mirror, "f", data))[0] == 201


async def test_without_the_service_nothing_is_written(mirror: Served) -> None:
    await asyncio.to_thread(mirror.kill)
    async with Line.to(mirror) as line:
        await line.begin("/api/files/f", b"never sent", Expect="100-continue")
        assert (await line.answer())[0] == 502
    assert mirror.incoming == []
    await asyncio.to_thread(mirror.start)


@pytest.mark.lab
async def test_a_full_disk_is_said_and_what_was_there_is_served(small_disk: Path, tmp_path: Path) -> None:
    old, new = os.urandom(8 * MIB), os.urandom(20 * MIB)
    with serving(tmp_path, small_disk / "root", f"reserve_bytes: {2 * MIB}\n") as mirror:
        assert (await put(mirror, "f", old))[0] == 201
        async with Line.to(mirror) as line:
            await line.begin("/api/files/f?replace=1", os.urandom(23 * MIB), Expect="100-continue")
            status, told, _ = await line.answer()
            assert (status, told["code"]) == (507, "no-room")
            assert "free beside the reserve" in str(told["detail"])
        # Two that fit alone, but not together.
        async with Line.to(mirror) as line:
            await line.begin("/api/files/f?replace=1", new)
            await line.send(new[: 4 * MIB])
            await asyncio.to_thread(wait_for, lambda: bool(mirror.incoming), "nginx to write")
            assert (await put(mirror, "g", os.urandom(4 * MIB), Authorization=f"Bearer {OTHER}"))[0] == 507
            # The disk fills from elsewhere.
            (small_disk / "other").write_bytes(b"x" * (10 * MIB))
            await line.send(new[4 * MIB :])
            status, told, _ = await line.answer()
            assert (status, told) == (507, {"code": "no-room", "detail": "the disk is full"})
        await nothing_is_left(mirror)
        assert await got(mirror, "f") == old
        (small_disk / "other").unlink()
        assert (await put(mirror, "f?replace=1", new))[0] == 201
        assert await got(mirror, "f") == new
