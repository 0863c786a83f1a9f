"""Each maker's tree as its firmware serves it: who it is, what it logs, what only it can do."""

from __future__ import annotations

import base64
import datetime
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from PIL import Image

from bmc import errors
from bmc.capability import BmcTarget, BootTarget, Credential, PowerState, Reading
from bmc.drivers import connect_redfish
from bmc.ipmi.endpoint import Endpoint
from bmc.redfish.driver import Redfish
from lab.bmc.redfish.certificate import load, make_identity

FIXTURES = Path(__file__).parent / "fixtures" / "redfish"
HOST = "127.162.0.3"


@dataclass
class Tree:
    """A BMC that serves one fixture over TLS; what is written to it is kept in `wrote`."""

    resources: dict[str, Any]
    answers: dict[str, web.Response] = field(default_factory=dict)
    wrote: list[tuple[str, str, Any]] = field(default_factory=list)
    versions: list[str | None] | None = None  # If-Match of each PATCH; a list here demands one
    basic: bool = False  # knows no sessions

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path_qs.removesuffix("/")
        if self.basic and path != "/redfish/v1":
            sessions = "SessionService" in path
            if sessions or request.headers.get("Authorization") != "Basic cm9vdDpzZWNyZXQ=":
                return web.Response(status=404 if sessions else 401)
        if request.method == "GET" and path in self.resources:
            return web.json_response(self.resources[path])
        if path.endswith("/SessionService/Sessions") and request.method == "POST":
            return web.json_response({}, status=201, headers={"X-Auth-Token": "t", "Location": f"{path}/1"})
        if request.method == "PATCH" and self.versions is not None:
            self.versions.append(request.headers.get("If-Match"))
            if self.versions[-1] is None:
                return web.Response(status=428)
        if request.method in ("POST", "PATCH"):
            body = json.loads(await request.read() or b"{}")
            self.wrote.append((request.method, path, body))
        made = self.answers.get(f"{request.method} {path}")
        if made is not None:
            return web.Response(status=made.status, body=made.body, headers=dict(made.headers))
        known = request.method != "GET" and not path.startswith("/redfish/v1/Dell")
        return web.Response(status=204 if known else 404)


@asynccontextmanager
async def serving(
    name: str, *, basic: bool = False, password: str = "secret"
) -> AsyncIterator[tuple[Tree, Redfish]]:
    """Serve a fixture and log in to it."""
    tree = Tree(json.loads((FIXTURES / f"{name}.json").read_text()), basic=basic)
    identity = make_identity("v", HOST, datetime.datetime.now(datetime.UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, identity)
    runner = web.ServerRunner(web.Server(tree.handle))
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    target = BmcTarget(
        "node-v",
        HOST,
        Credential("root", password),
        protocol="redfish",
        redfish_port=port,
        fingerprint=identity.fingerprint,
    )
    endpoint = Endpoint()
    try:
        async with connect_redfish(target, endpoint=endpoint) as bmc:
            yield tree, bmc
        assert endpoint.counts.open == 0
    finally:
        await endpoint.aclose()
        await runner.cleanup()


DELL, HPE, LENOVO = "dell-r750-idrac9-6.10", "hpe-dl380a-gen11-ilo6-1.62", "lenovo-sr675-v3-xcc2-5.10"
NVIDIA, OPENBMC = "nvidia-dgx-h100-24.09.17", "openbmc-bmcweb-2.18"
SUPERMICRO = "supermicro-sys-821ge-x13-01.03.20"


def test_every_fixture_is_used() -> None:
    assert {path.stem for path in FIXTURES.glob("*.json")} == {row[0] for row in IDENTITIES}


IDENTITIES = [
    (DELL, "dell", "LABDEL1", "PowerEdge R750", "6.10.80.00"),
    (HPE, "hpe", "LABHPE0001", "ProLiant DL380a Gen11", "iLO 6 v1.62"),
    (LENOVO, "lenovo", "LABLEN0001", "ThinkSystem SR675 V3", "USX338D 5.10 2026-01-12"),
    (NVIDIA, "nvidia", "LABDGX0001", "DGX H100", "24.09.17"),
    (OPENBMC, "openbmc", "LABOBM0001", "Board 9", "2.18.0-dev"),
    (SUPERMICRO, "supermicro", "LABSMC0001", "SYS-821GE-TNHR", "01.03.20"),
]


@pytest.mark.parametrize(("fixture", "vendor", "serial", "product", "firmware"), IDENTITIES)
async def test_knows_the_maker_and_the_node(
    fixture: str, vendor: str, serial: str, product: str, firmware: str
) -> None:
    async with serving(fixture) as (_, bmc):
        identity = await bmc.identity()
        assert bmc.vendor.name == vendor
        assert (identity.serial, identity.product, identity.firmware) == (serial, product, firmware)
        assert serial in {value for fields in (await bmc.fru()).values() for value in fields.values()}


@pytest.mark.parametrize(
    ("fixture", "entries"),
    [
        (DELL, [("ok", True, 2026), ("critical", True, 2026)]),
        (HPE, [("warning", True, None), ("critical", True, 2026)]),
        (LENOVO, [("ok", True, 2026), ("critical", True, 2026)]),
        (NVIDIA, [("critical", True, 2026)]),
        (OPENBMC, [("ok", True, None), ("critical", True, 2026)]),
        (SUPERMICRO, [("unknown", True, 2026), ("warning", False, 2026)]),
    ],
)
async def test_reads_its_event_log_over_all_pages(
    fixture: str, entries: list[tuple[str, bool, int | None]]
) -> None:
    async with serving(fixture) as (_, bmc):
        read = await bmc.sel()
    assert [
        (entry.severity, entry.asserted, entry.time.year if entry.time else None) for entry in read
    ] == entries
    assert all(entry.event and entry.raw for entry in read)


@pytest.mark.parametrize(
    ("fixture", "count", "wanted"),
    [
        (DELL, 5, ("System Board Inlet Temp", 22.0, "°C", "ok", "upper critical", 47.0)),
        (HPE, 4, ("01-Inlet Ambient", 25.0, "°C", "ok", "upper non-recoverable", 47.0)),
        (LENOVO, 1, ("Ambient Temp", 23.0, "°C", "ok", "upper non-recoverable", 50.0)),
        (NVIDIA, 3, ("HGX GPU SXM 2 TEMP 0", 42.0, "°C", "ok", "upper critical", 92.0)),
        (OPENBMC, 1, ("FAN 2", 0.0, "RPM", "critical", "lower critical", 500.0)),
        (SUPERMICRO, 2, ("FAN1", 8400.0, "RPM", "ok", "lower critical", 420.0)),
    ],
)
async def test_reads_its_sensors_and_leaves_absent_parts_out(
    fixture: str, count: int, wanted: tuple[str, float, str, str, str, float]
) -> None:
    async with serving(fixture) as (_, bmc):
        readings = await bmc.sensors()
    name, value, unit, health, limit, at = wanted
    assert len(readings) == count
    found: Reading = next(reading for reading in readings if reading.name == name)
    assert (found.value, found.unit, found.health, found.thresholds[limit]) == (value, unit, health, at)


async def test_a_node_on_its_way_up_is_on() -> None:
    async with serving(OPENBMC) as (_, bmc):
        assert await bmc.power_state() is PowerState.ON
    async with serving(LENOVO) as (_, bmc):
        assert await bmc.power_state() is PowerState.OFF


@pytest.mark.parametrize(("fixture", "mode"), [(HPE, True), (NVIDIA, False)])
async def test_sets_the_boot_mode_only_where_there_is_one(fixture: str, mode: bool) -> None:
    async with serving(fixture) as (tree, bmc):
        await bmc.set_boot(BootTarget.PXE)
        boot = tree.wrote[-1][2]["Boot"]
    assert ("BootSourceOverrideMode" in boot) is mode
    assert (boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]) == ("Pxe", "Once")


async def test_boot_override_goes_to_the_settings_where_the_system_refuses_it() -> None:
    async with serving(NVIDIA) as (tree, bmc):
        tree.answers["PATCH /redfish/v1/Systems/DGX"] = web.Response(status=400)
        await bmc.set_boot(BootTarget.DISK)
        assert tree.wrote[-1][1] == "/redfish/v1/Systems/DGX/SD"


@pytest.mark.parametrize(
    ("fixture", "body"),
    [
        (HPE, {"LocationIndicatorActive": True}),
        (LENOVO, {"IndicatorLED": "Blinking"}),
        (DELL, {"IndicatorLED": "Blinking"}),
    ],
)
async def test_blinks_in_the_words_that_the_bmc_knows(fixture: str, body: dict[str, object]) -> None:
    async with serving(fixture) as (tree, bmc):
        await bmc.identify(on=True)
    assert tree.wrote[-1][2] == body


@pytest.mark.parametrize(
    ("fixture", "end", "body"),
    [
        (HPE, "HpeComputerSystemExt.SystemReset", {"ResetType": "AuxCycle"}),
        (SUPERMICRO, "SmcSystemReset.ACCycle", {}),
        (NVIDIA, "NvidiaChassis.AuxPowerReset", {"ResetType": "AuxPowerCycle"}),
    ],
)
async def test_takes_the_mains_away_as_its_maker_does(fixture: str, end: str, body: dict[str, str]) -> None:
    async with serving(fixture) as (tree, bmc):
        await bmc.ac_cycle()
    assert tree.wrote[-1][1].endswith(end)
    assert tree.wrote[-1][2] == body


@pytest.mark.parametrize("fixture", [DELL, LENOVO, OPENBMC])
async def test_says_that_it_cannot_take_the_mains_away(fixture: str) -> None:
    async with serving(fixture) as (_, bmc):
        with pytest.raises(errors.Unsupported):
            await bmc.ac_cycle()


def picture(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 4), (0, 0, 170)).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("old_path", [False, True])
async def test_dells_screenshot_is_found_at_both_its_places(old_path: bool) -> None:
    new = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellLCService/Actions"
    old = "/redfish/v1/Dell/Managers/iDRAC.Embedded.1/DellLCService/Actions"
    body = {"ServerScreenShotFile": base64.b64encode(picture("PNG")).decode()}
    async with serving(DELL) as (tree, bmc):
        shot = web.json_response(body)
        tree.answers[f"POST {old if old_path else new}/DellLCService.ExportServerScreenShot"] = shot
        if old_path:
            tree.answers[f"POST {new}/DellLCService.ExportServerScreenShot"] = web.Response(status=404)
        assert (await bmc.screenshot()).data == picture("PNG")


async def test_hpes_thumbnail_becomes_a_png() -> None:
    async with serving(HPE) as (tree, bmc):
        tree.answers["GET /images/thumbnail.bmp"] = web.Response(body=picture("BMP"))
        shot = await bmc.screenshot()
    assert shot.media_type == "image/png"
    assert Image.open(io.BytesIO(shot.data)).size == (8, 4)


@pytest.mark.parametrize(
    ("path", "kind", "media_type"),
    [
        ("/download/HostScreenShot.png", "PNG", "image/png"),
        ("/web_download/Mini_ScreenShot.jpg", "JPEG", "image/jpeg"),
    ],
)
async def test_lenovos_screenshot_is_kept_as_sent(path: str, kind: str, media_type: str) -> None:
    async with serving(LENOVO) as (tree, bmc):
        if kind == "PNG":
            tree.answers["GET /api/providers/rp_screenshot"] = web.Response(body=b"{}")
        tree.answers[f"GET {path}"] = web.Response(body=picture(kind))
        shot = await bmc.screenshot()
    assert (shot.data, shot.media_type) == (picture(kind), media_type)


@pytest.mark.parametrize("fixture", [DELL, HPE])
async def test_a_screenshot_that_is_no_picture_is_a_bad_answer(fixture: str) -> None:
    place = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellLCService/Actions"
    async with serving(fixture) as (tree, bmc):
        tree.answers[f"POST {place}/DellLCService.ExportServerScreenShot"] = web.json_response({"x": 1})
        tree.answers["GET /images/thumbnail.bmp"] = web.Response(body=b"<html>")
        with pytest.raises(errors.BadAnswer):
            await bmc.screenshot()


@pytest.mark.parametrize("fixture", [SUPERMICRO, NVIDIA, OPENBMC])
async def test_says_that_it_has_no_screenshot(fixture: str) -> None:
    async with serving(fixture) as (_, bmc):
        with pytest.raises(errors.Unsupported):
            await bmc.screenshot()


async def test_nvidias_dump_is_collected_and_fetched() -> None:
    attachment = "/redfish/v1/Managers/BMC/LogServices/Dump/Entries/1/attachment"
    async with serving(NVIDIA) as (tree, bmc):
        tree.answers[f"GET {attachment}"] = web.Response(body=b"dump")
        name, data = await bmc.support_dump(deadline_s=5)
    assert (name, data) == ("nvidia-dump.tar.xz", b"dump")
    assert tree.wrote[-1][2] == {"DiagnosticDataType": "Manager"}


async def test_hpes_health_log_is_fetched() -> None:
    async with serving(HPE) as (tree, bmc):
        tree.answers["GET /ahsdata/LABHPE0001.ahs?days=7"] = web.Response(body=b"ahs")
        assert (await bmc.support_dump())[1] == b"ahs"


async def test_a_change_names_the_version_where_the_bmc_wants_it() -> None:
    async with serving(LENOVO) as (tree, bmc):
        tree.versions = []
        await bmc.identify(on=False)
    assert tree.versions == [None, '"1f2"']


async def test_a_bmc_without_sessions_gets_the_password_with_each_request() -> None:
    async with serving(OPENBMC, basic=True) as (_, bmc):
        assert await bmc.power_state() is PowerState.ON


async def test_a_wrong_password_is_told_without_sessions_too() -> None:
    with pytest.raises(errors.AuthRejected):
        async with serving(OPENBMC, basic=True, password="wrong"):
            pass
