"""What whoever puts and gets files may count on."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import aiohttp
import pytest

from provision.mirror.client import Mirror
from provision.mirror.errors import (
    DigestMismatch,
    MirrorAuthRejected,
    MirrorRefused,
    UnknownFile,
)
from tests.contract.mirror.bench import OTHER, TOKEN, Served, sha256


def a_file(folder: Path, name: str, size: int = 300_000) -> Path:
    path = folder / name
    path.write_bytes(os.urandom(size))
    return path


async def fetch(url: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return (
            answer.status,
            await answer.read(),
            {key.lower(): value for key, value in answer.headers.items()},
        )


async def test_a_file_comes_back_by_name_and_by_digest(ana: Mirror, mirror: Served, tmp_path: Path) -> None:
    path = a_file(tmp_path, "driver.run")
    put = await ana.put(path, "nvidia/driver-1.run")
    assert put.sha256 == sha256(path.read_bytes())
    for ref in ("nvidia/driver-1.run", put.sha256):
        await ana.get(ref, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == path.read_bytes()
    _, text, _ = await fetch(f"{mirror.url}/SHA256SUMS")
    assert text.decode() == f"{put.sha256}  nvidia/driver-1.run\n"


async def test_an_empty_file_is_a_file(ana: Mirror, tmp_path: Path) -> None:
    await ana.put(a_file(tmp_path, "nothing", 0), "nothing")
    await ana.get("nothing", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


async def test_nobody_writes_without_a_known_token(mirror: Served, tmp_path: Path) -> None:
    path = a_file(tmp_path, "f")
    for token in ("", "wrong"):
        async with mirror.client(token) as nobody:
            with pytest.raises(MirrorAuthRejected):
                await nobody.put(path, "f")
            assert await nobody.files() == ()


async def test_a_client_cannot_name_itself_by_headers(mirror: Served) -> None:
    forged = {"X-Client-Verify": "SUCCESS", "X-Client-Name": "CN=root"}
    status, _, _ = await fetch(f"{mirror.url}/uploads?sha256={'0' * 64}", **forged)
    assert status == 401


async def test_a_name_moves_only_when_told_to(ana: Mirror, tmp_path: Path) -> None:
    first, second = a_file(tmp_path, "one"), a_file(tmp_path, "two")
    await ana.put(first, "image.tar")
    with pytest.raises(MirrorRefused):
        await ana.put(second, "image.tar")
    assert (await ana.look_up("image.tar")).sha256 == sha256(first.read_bytes())
    await ana.put(second, "image.tar", replace=True)
    assert (await ana.look_up("image.tar")).sha256 == sha256(second.read_bytes())


async def test_two_uploads_of_one_name_leave_one_of_them_whole(
    ana: Mirror, mirror: Served, tmp_path: Path
) -> None:
    paths = [a_file(tmp_path, f"v{number}", 3_000_000) for number in range(2)]
    async with mirror.client(OTHER) as ben:
        await asyncio.gather(
            ana.put(paths[0], "image.tar", replace=True), ben.put(paths[1], "image.tar", replace=True)
        )
    status, body, _ = await fetch(f"{mirror.url}/files/image.tar")
    assert status == 200
    assert body in {path.read_bytes() for path in paths}
    assert {file.sha256 for file in await ana.files()} == {sha256(path.read_bytes()) for path in paths}


async def test_a_wrong_digest_publishes_nothing(ana: Mirror, mirror: Served, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Sha256": "ab" * 32}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.put(f"{mirror.url}/api/files/f", data=b"other bytes") as answer,
    ):
        assert answer.status == 422
        assert (await answer.json())["code"] == "digest"
    assert await ana.files() == ()
    with pytest.raises(UnknownFile):
        await ana.look_up("f")
    assert list((mirror.root / "partial").iterdir()) == []


async def test_ranges_and_etags_follow_the_content(ana: Mirror, mirror: Served, tmp_path: Path) -> None:
    one, two = a_file(tmp_path, "one"), a_file(tmp_path, "two")
    await ana.put(one, "f")
    url = f"{mirror.url}/files/f"
    status, body, headers = await fetch(url, Range="bytes=100-199")
    assert (status, body) == (206, one.read_bytes()[100:200])
    assert (await fetch(url, **{"If-None-Match": headers["etag"]}))[0] == 304
    # Same size, same second: only the content differs, and so does the tag.
    await ana.put(two, "f", replace=True)
    status, body, _ = await fetch(url, **{"Range": "bytes=100-199", "If-Range": headers["etag"]})
    assert (status, body) == (200, two.read_bytes())


async def test_what_is_named_or_pinned_is_not_collected(ana: Mirror, tmp_path: Path) -> None:
    named, pinned, loose = (a_file(tmp_path, name) for name in ("named", "pinned", "loose"))
    await ana.put(named, "named")
    kept = await ana.put(pinned, "")
    gone = await ana.put(loose, "")
    await ana.pin(kept.sha256, "the release of May")
    assert [file.sha256 for file in await ana.collect(0, dry_run=True)] == [gone.sha256]
    assert len(await ana.files()) == 3
    await ana.collect(0, dry_run=False)
    assert {file.sha256 for file in await ana.files()} == {sha256(named.read_bytes()), kept.sha256}
    assert [file.pinned for file in await ana.files() if file.pinned] == ["ana: the release of May"]
    await ana.unpin(kept.sha256)
    await ana.remove_name("named")
    assert len(await ana.collect(0, dry_run=False)) == 2
    assert await ana.files() == ()


async def test_what_rots_on_the_disk_is_found_and_served_no_more(
    ana: Mirror, mirror: Served, tmp_path: Path
) -> None:
    path = a_file(tmp_path, "f")
    put = await ana.put(path, "f")
    content = mirror.root / "sha256" / put.sha256
    content.chmod(0o644)
    with content.open("r+b") as file:
        file.write(b"rot")
    assert [item async for item in ana.verify()] == [(put.sha256, False)]
    assert (await fetch(f"{mirror.url}/files/f"))[0] == 404
    await ana.put(path, "f")
    assert [item async for item in ana.verify()] == [(put.sha256, True)]


async def test_a_get_goes_on_and_throws_away_what_is_spoilt(ana: Mirror, tmp_path: Path) -> None:
    path = a_file(tmp_path, "f")
    put = await ana.put(path, "f")
    part = tmp_path / f".back.{put.sha256[:16]}.part"
    part.write_bytes(path.read_bytes()[:1000])
    await ana.get("f", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == path.read_bytes()
    (tmp_path / f".again.{put.sha256[:16]}.part").write_bytes(b"x" * 1000)
    with pytest.raises(DigestMismatch):
        await ana.get("f", tmp_path / "again")
    assert not (tmp_path / "again").exists()


async def test_the_log_says_who_did_what(ana: Mirror, mirror: Served, tmp_path: Path) -> None:
    put = await ana.put(a_file(tmp_path, "f"), "f")
    lines = [json.loads(line) for line in (mirror.folder / "writes.log").read_text().splitlines()]
    last = [line for line in lines if line["method"] == "PATCH"][-1]
    assert (last["who"], last["sha256"], last["status"]) == ("ana", put.sha256, 204)
    assert TOKEN not in (mirror.folder / "writes.log").read_text()


async def test_it_tells_people_programs_and_monitoring(ana: Mirror, mirror: Served, tmp_path: Path) -> None:
    await ana.put(a_file(tmp_path, "f"), "a+b")
    _, page, _ = await fetch(f"{mirror.url}/")
    assert b'href="/files/a%2Bb"' in page
    _, numbers, _ = await fetch(f"{mirror.url}/metrics")
    assert b"muster_mirror_published_total 1\n" in numbers
    assert b"muster_mirror_stored_bytes 300000\n" in numbers
    status, health, _ = await fetch(f"{mirror.url}/healthz")
    assert (status, json.loads(health)["status"]) == (200, "ok")


@pytest.mark.parametrize(
    "name", ["../etc/passwd", ".hidden", "a//b", "a/../b", "/abs", "x" * 300, "a b", "a/"]
)
async def test_no_name_leads_out_of_the_folder(mirror: Served, name: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Sha256": sha256(b"x"), "Content-Length": "1"}
    reader, writer = await asyncio.open_connection("127.0.0.1", int(mirror.url.rpartition(":")[2]))
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    writer.write(f"PUT /api/files/{name.replace(' ', '%20')} HTTP/1.1\r\nHost: x\r\n{lines}\r\nx".encode())
    status = int((await reader.readline()).split()[1])
    writer.close()
    await writer.wait_closed()
    assert status in {400, 404, 405}
    assert list((mirror.root / "names").iterdir()) == []
