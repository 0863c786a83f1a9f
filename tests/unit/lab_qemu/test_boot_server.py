"""The boot server between a node and a MAAS of this test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from lab.qemu import Assets, BootServer, start_boot_server
from tests.unit.lab_qemu.conftest import MAC


@dataclass
class Maas:
    """Answers as the boot service is documented to, and remembers what it was asked."""

    intent: str = "install"
    status: int = 200
    asked: list[str] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)

    async def boot(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        token = f"token-{len(self.asked)}"
        return web.json_response(
            {"intent": self.intent, "hostname": "lab-real-n01", "token": token, "ssh_keys": ["a key"]},
            status=self.status,
        )

    async def report(self, request: web.Request) -> web.Response:
        self.reports.append(await request.json())
        return web.json_response({"status": "ok", "next": "reboot"}, status=self.status)


@dataclass
class Bench:
    maas: Maas
    server: BootServer
    session: aiohttp.ClientSession

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"http://127.0.0.1:{self.server.port}{path}") as answer:
            return answer.status, await answer.text()

    async def report(self, mac: str, body: dict[str, Any]) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.port}/boot/{mac}/report"
        async with self.session.post(url, json=body) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def bench(assets: Assets) -> AsyncIterator[Bench]:
    maas = Maas()
    app = web.Application()
    app.add_routes([web.get("/boot/{mac}", maas.boot), web.post("/boot/{mac}/report", maas.report)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = await start_boot_server(assets, f"http://127.0.0.1:{runner.addresses[0][1]}/")
    server.register(MAC, "127.77.3.1")
    async with aiohttp.ClientSession() as session:
        yield Bench(maas, server, session)
    await server.close()
    await runner.cleanup()


async def test_a_boot_asks_maas_once_so_that_its_token_lives(bench: Bench) -> None:
    status, script = await bench.get(f"/ipxe/{MAC.upper()}")
    assert status == 200
    assert f"kernel http://10.0.2.2:{bench.server.port}/kernel " in script
    for _ in range(2):
        status, order = await bench.get(f"/order/{MAC}")
        assert status == 200
        assert "token=token-1\n" in order
        assert "address=127.77.3.1\n" in order
        assert f"image_bytes={2 << 20}\n" in order
    assert bench.maas.asked == [f"/boot/{MAC}"]


async def test_an_order_exists_only_after_a_network_boot(bench: Bench) -> None:
    assert (await bench.get(f"/order/{MAC}"))[0] == 409
    assert bench.maas.asked == []


async def test_serves_the_files(bench: Bench) -> None:
    assert await bench.get("/kernel") == (200, "a kernel")
    assert await bench.get("/initrd") == (200, "an initrd")
    status, image = await bench.get(f"/image/{MAC}")
    assert (status, len(image)) == (200, 2 << 20)


async def test_passes_reports_on_and_answers_back(bench: Bench) -> None:
    told = {"token": "t", "phase": "installation", "event": "finished"}
    status, answer = await bench.report(MAC, told)
    assert (status, '"next": "reboot"' in answer) == (200, True)
    assert bench.maas.reports == [told]
    bench.maas.status = 403
    assert (await bench.report(MAC, told))[0] == 403


async def test_knows_only_its_nodes(bench: Bench) -> None:
    stranger = "52:54:00:77:02:09"
    for path in (f"/ipxe/{stranger}", f"/order/{stranger}", f"/image/{stranger}", "/ipxe/..%2f..%2fetc"):
        assert (await bench.get(path))[0] == 404
    assert (await bench.report(stranger, {}))[0] == 404
    assert bench.maas.asked == []
    assert bench.maas.reports == []


async def test_says_that_maas_answers_wrongly(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.maas.status = 503
    status, text = await bench.get(f"/ipxe/{MAC}")
    assert (status, text) == (502, "MAAS answered 503 to a network boot\n")
    bench.maas.status, bench.maas.intent = 200, "dance"
    assert (await bench.get(f"/ipxe/{MAC}"))[0] == 502
    assert "token" not in caplog.text


async def test_says_that_maas_is_away(boot_server: BootServer) -> None:
    boot_server.register(MAC, "127.77.3.1")
    url = f"http://127.0.0.1:{boot_server.port}/ipxe/{MAC}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 502
        assert "MAAS does not answer" in await answer.text()


async def test_a_refused_image_is_refused_to_that_node_only(bench: Bench) -> None:
    other = "52:54:00:77:02:02"
    bench.server.register(other, "127.77.3.2")
    bench.server.refuse_image(MAC, True)
    assert (await bench.get(f"/image/{MAC}"))[0] == 404
    assert (await bench.get(f"/image/{other}"))[0] == 200
    bench.server.refuse_image(MAC, False)
    assert (await bench.get(f"/image/{MAC}"))[0] == 200


async def test_a_loop_leads_back_to_itself_without_asking_maas(bench: Bench) -> None:
    bench.server.loop(MAC, True)
    _, script = await bench.get(f"/ipxe/{MAC}")
    assert f"chain http://10.0.2.2:{bench.server.port}/ipxe/{MAC}\n" in script
    assert bench.maas.asked == []
    bench.server.loop(MAC, False)
    assert "kernel" in (await bench.get(f"/ipxe/{MAC}"))[1]


async def test_closing_cuts_a_transfer(bench: Bench) -> None:
    url = f"http://127.0.0.1:{bench.server.port}/kernel"
    async with asyncio.timeout(5):
        async with bench.session.get(url) as answer:
            assert answer.status == 200
        await bench.server.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await bench.session.get(url)
