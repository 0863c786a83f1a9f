"""The package proxy: to the machine's own sources, each file once, and nowhere else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from lab.nodes.proxy import PackageProxy
from lab.nodes.sources import Archive, Source


@dataclass
class Place:
    """A proxy before one source, and a client that goes through it."""

    source: str
    proxy: PackageProxy
    client: aiohttp.ClientSession
    address: str
    asked: Counter[str]

    async def get(self, url: str, **headers: str) -> tuple[int, bytes]:
        async with self.client.get(url, proxy=self.address, headers=headers) as answer:
            return answer.status, await answer.read()


@asynccontextmanager
async def source_server(asked: Counter[str]) -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.StreamResponse:
        asked[request.path] += 1
        if "gone" in request.path:
            return web.Response(status=404)
        await asyncio.sleep(0)
        wanted = request.headers.get("Range")
        return web.Response(text=f"{request.path} {wanted or 'whole'}")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    asked: Counter[str] = Counter()
    async with source_server(asked) as source, aiohttp.ClientSession() as client:
        archive = Archive("s", (Source(f"{source}/debian", "s", ("main",), None),), (), None)
        proxy = PackageProxy(archive, tmp_path / "cache", client)
        await proxy.start("127.0.0.1", 0)
        yield Place(source, proxy, client, f"http://127.0.0.1:{proxy.port}", asked)
        await proxy.close()


async def test_many_nodes_at_once_fetch_a_package_once(place: Place) -> None:
    url = f"{place.source}/debian/pool/t/tree.deb"
    answers = await asyncio.gather(*(place.get(url) for _ in range(8)))
    assert set(answers) == {(200, b"/debian/pool/t/tree.deb whole")}
    assert place.asked["/debian/pool/t/tree.deb"] == 1


async def test_what_changes_under_its_name_is_asked_for_every_time(place: Place) -> None:
    url = f"{place.source}/debian/dists/s/InRelease"
    await place.get(url)
    await place.get(url)
    assert place.asked["/debian/dists/s/InRelease"] == 2


async def test_other_places_are_refused_without_asking_them(place: Place) -> None:
    other: Counter[str] = Counter()
    async with source_server(other) as elsewhere:
        status, _ = await place.get(f"{elsewhere}/debian/pool/x.deb")
    assert status == 403
    assert not other
    assert place.proxy.refused == 1


async def test_part_of_a_file_is_passed_through_and_not_kept(place: Place) -> None:
    url = f"{place.source}/debian/pool/t/tree.deb"
    assert await place.get(url, Range="bytes=5-") == (200, b"/debian/pool/t/tree.deb bytes=5-")
    assert await place.get(url) == (200, b"/debian/pool/t/tree.deb whole")


async def test_a_file_that_the_source_lacks_is_not_kept(place: Place, tmp_path: Path) -> None:
    assert (await place.get(f"{place.source}/debian/pool/gone.deb"))[0] == 404
    assert not list((tmp_path / "cache").iterdir())


async def test_a_source_that_does_not_answer_is_a_gateway_timeout(place: Place, tmp_path: Path) -> None:
    archive = Archive("s", (Source("http://127.0.0.1:9/debian", "s", ("main",), None),), (), None)
    proxy = PackageProxy(archive, tmp_path / "other", place.client)
    await proxy.start("127.0.0.1", 0)
    address = f"http://127.0.0.1:{proxy.port}"
    async with place.client.get("http://127.0.0.1:9/debian/pool/x.deb", proxy=address) as answer:
        assert answer.status == 504
    await proxy.close()
