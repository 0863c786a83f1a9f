"""What firmware prints and decides, against a MAAS boot service that a test scripts."""

from __future__ import annotations

import aiohttp
from aiohttp import web

from lab.nodes.boot_service import BootService, Intent, Order, ScriptResult
from lab.nodes.firmware import Pace, network_boot, self_test
from lab.spec import LabNet, RackKind, node_spec

SPEC = node_spec(LabNet(), RackKind.NAMESPACE, 1)
QUICK = Pace(post=0.0, dhcp=0.0, retry=0.0)


class Console(list[str]):
    @property
    def text(self) -> str:
        return "".join(self)


class Boots:
    """A boot service with one answer; keeps what it was asked and told."""

    def __init__(self, status: int = 200, **answer: object) -> None:
        self._status = status
        self._answer = answer
        self.asked = 0
        self.reports: list[dict[str, object]] = []

    async def __aenter__(self) -> BootService:
        app = web.Application()
        app.router.add_get("/boot/{mac}", self._boot)
        app.router.add_post("/boot/{mac}/report", self._report)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._client = aiohttp.ClientSession()
        port = self._runner.addresses[0][1]
        return BootService(self._client, f"http://127.0.0.1:{port}", SPEC.mac)

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _boot(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.json_response(self._answer, status=self._status)

    async def _report(self, request: web.Request) -> web.Response:
        self.reports.append(await request.json())
        return web.json_response({"status": "ok", "next": "reboot"})


async def boot(service: BootService, *, lease: bool = True) -> tuple[Order | None, str]:
    console = Console()
    order = await network_boot(console.append, SPEC, service, QUICK, lease=lease)
    return order, console.text


async def test_self_test_names_the_node_that_it_runs_on() -> None:
    console = Console()
    await self_test(console.append, SPEC, QUICK)
    assert "LAB-N01" in console.text
    assert SPEC.mac.upper() in console.text


async def test_an_order_is_read_whole() -> None:
    boots = Boots(intent="install", token="t", hostname="gpu-1", ssh_keys=["k1", "k2"], user_data="aGk=")
    async with boots as service:
        order, text = await boot(service)
    assert order == Order(Intent.INSTALL, "t", "gpu-1", "", ("k1", "k2"), b"hi")
    assert "iPXE initialising devices...ok" in text
    assert f"Configuring (net0 {SPEC.mac})...... ok" in text


async def test_user_data_that_is_not_base64_is_kept_as_it_is() -> None:
    async with Boots(intent="install", user_data="#!/bin/sh\necho hi\n") as service:
        order, _ = await boot(service)
    assert order is not None
    assert order.user_data == b"#!/bin/sh\necho hi\n"


async def test_without_a_lease_maas_is_never_asked() -> None:
    boots = Boots(intent="install")
    async with boots as service:
        order, text = await boot(service, lease=False)
    assert order is None
    assert boots.asked == 0
    assert "No configuration methods succeeded (https://ipxe.org/040ee119)" in text


async def test_an_answer_that_is_an_error_sends_firmware_to_the_next_device() -> None:
    async with Boots(status=503) as service:
        order, text = await boot(service)
    assert order is None
    assert "Could not boot image" in text


async def test_an_intent_that_does_not_exist_does_not_boot() -> None:
    async with Boots(intent="dance") as service:
        order, text = await boot(service)
    assert order is None
    assert "Exec format error" in text


async def test_a_maas_that_is_away_does_not_boot() -> None:
    async with aiohttp.ClientSession() as client:
        order, text = await boot(BootService(client, "http://127.0.0.1:9", SPEC.mac))
    assert order is None
    assert "Connection timed out" in text


async def test_reports_carry_outputs_and_return_what_maas_wants() -> None:
    boots = Boots(intent="local")
    async with boots as service:
        result = ScriptResult("lshw", 1, b"\xff", b"oops")
        wanted = await service.report("t", "commissioning", "finished", results=[result], address="10.77.1.1")
    assert wanted == "reboot"
    (told,) = boots.reports
    assert told["token"] == "t"
    assert told["results"] == [{"name": "lshw", "exit_status": 1, "stdout": "/w==", "stderr": "b29wcw=="}]


async def test_a_report_that_nobody_takes_is_answered_with_nothing() -> None:
    async with aiohttp.ClientSession() as client:
        assert await BootService(client, "http://127.0.0.1:9", SPEC.mac).report("t", "boot", "finished") == ""
