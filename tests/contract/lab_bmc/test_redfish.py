"""The Redfish service over real TLS, by a plain HTTP client."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import ssl
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from PIL import Image

from lab.bmc import Bmc, LightChassis, Privilege
from lab.bmc.power import Action
from tests.contract.lab_bmc.conftest import ADDRESS, PASSWORD, USER, Lab, until

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/System.Embedded.1"
MANAGER = f"{ROOT}/Managers/iDRAC.Embedded.1"
LC = f"{MANAGER}/Oem/Dell/DellLCService/Actions/DellLCService"
Body = dict[str, Any]


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Client:
    """A logged-in client of one BMC."""

    def __init__(self, lab: Lab, http: aiohttp.ClientSession) -> None:
        self.lab = lab
        self.http = http
        self.base = f"https://{ADDRESS}:{lab.rack.redfish('node-c').port}"
        self.auth = basic(USER, PASSWORD)

    @property
    def bmc(self) -> Bmc:
        return self.lab.bmc

    @property
    def chassis(self) -> LightChassis:
        return self.lab.chassis

    async def call(self, method: str, path: str, body: Any = None, **words: Any) -> tuple[int, Any, Any]:
        """Return status, body and headers."""
        words = {"headers": self.auth, **words}
        async with self.http.request(method, self.base + path, json=body, ssl=False, **words) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, await answer.json() if is_json else await answer.read(), answer.headers

    async def get(self, path: str) -> Body:
        status, body, _ = await self.call("GET", path)
        assert status == 200, body
        assert isinstance(body, dict)
        return body

    async def settle(self, location: str) -> tuple[Body, Any]:
        """Follow a task until it ends."""
        async with asyncio.timeout(10):
            while True:
                status, body, headers = await self.call("GET", location)
                if status != 202:
                    return body, headers
                await asyncio.sleep(0.02)


@pytest.fixture
async def client(make_lab: Callable[..., Awaitable[Lab]]) -> AsyncIterator[Client]:
    lab = await make_lab(redfish_port=0, job_s=0.05, reset_s=0.3, redfish_session_limit=2)
    timeout = aiohttp.ClientTimeout(total=8)
    async with aiohttp.ClientSession(
        timeout=timeout, connector=aiohttp.TCPConnector(force_close=True)
    ) as http:
        yield Client(lab, http)


def message_id(body: Body) -> str:
    return str(body["error"]["@Message.ExtendedInfo"][0]["MessageId"])


async def test_the_root_is_open_and_the_rest_is_not(client: Client) -> None:
    client.auth = {}
    root = await client.get(f"{ROOT}/")
    assert (root["Vendor"], root["Oem"]["Dell"]["ServiceTag"]) == ("Dell", "LAB-C0001")
    status, body, headers = await client.call("GET", SYSTEM)
    assert (status, message_id(body)) == (401, "Base.1.12.AccessDenied")
    assert "Basic" in headers["WWW-Authenticate"]


async def test_every_link_of_the_tree_leads_somewhere(client: Client) -> None:
    seen: set[str] = set()
    waiting = [ROOT]
    while waiting:
        path = waiting.pop().split("#")[0]
        if path in seen:
            continue
        seen.add(path)
        body = await client.get(path)
        waiting += [target for target in links(body) if target not in seen]
    assert len(seen) > 90


def links(body: object) -> list[str]:
    if isinstance(body, dict):
        own = [body["@odata.id"]] if "@odata.id" in body else []
        return own + [target for value in body.values() for target in links(value)]
    return [target for value in body for target in links(value)] if isinstance(body, list) else []


async def test_sessions_have_tokens_a_limit_and_an_end(client: Client) -> None:
    client.auth = {}
    login = {"UserName": USER, "Password": PASSWORD}
    path = f"{ROOT}/SessionService/Sessions"
    status, _, headers = await client.call("POST", path, login)
    assert status == 201
    assert (await client.call("POST", path, login))[0] == 201
    status, body, _ = await client.call("POST", path, login)
    assert (status, message_id(body)) == (503, "IDRAC.2.8.RAC0218")
    token = {"headers": {"X-Auth-Token": headers["X-Auth-Token"]}}
    assert (await client.call("GET", SYSTEM, **token))[0] == 200
    assert (await client.call("DELETE", headers["Location"], **token))[0] == 200
    assert (await client.call("GET", SYSTEM, **token))[0] == 401
    assert (await client.call("POST", path, login))[0] == 201
    status, body, _ = await client.call("POST", path, {**login, "Password": "wrong"})
    assert (status, message_id(body)) == (401, "Base.1.12.AccessDenied")


async def test_power_is_the_same_machine_as_over_ipmi(client: Client) -> None:
    reset = f"{SYSTEM}/Actions/ComputerSystem.Reset"
    assert (await client.call("POST", reset, {"ResetType": "On"}))[0] == 204
    await client.bmc.power.settled()
    assert await client.lab.ok(client.lab.ipmitool("power", "status")) == "Chassis Power is on\n"
    assert (await client.get(SYSTEM))["PowerState"] == "On"
    status, body, _ = await client.call("POST", reset, {"ResetType": "On"})
    assert (status, message_id(body)) == (409, "IDRAC.2.8.PSU501")
    for kind in ("ForceRestart", "GracefulRestart", "PowerCycle"):
        assert (await client.call("POST", reset, {"ResetType": kind}))[0] == 204
        await client.bmc.power.settled()
        assert client.chassis.powered
    assert (await client.call("POST", reset, {"ResetType": "Explode"}))[0] == 400
    assert (await client.call("POST", reset, {}))[0] == 400
    assert (await client.call("POST", reset, {"ResetType": "ForceOff"}))[0] == 204
    await client.bmc.power.settled()
    assert not client.chassis.powered
    assert len(client.chassis.boots) == 4


async def test_the_boot_override_is_shared_with_ipmi(client: Client) -> None:
    wanted = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}
    assert (await client.call("PATCH", SYSTEM, {"Boot": wanted}))[0] == 200
    boot = (await client.get(SYSTEM))["Boot"]
    assert {key: boot[key] for key in wanted} == wanted
    assert "Force PXE" in await client.lab.ok(client.lab.ipmitool("chassis", "bootparam", "get", "5"))
    await client.call("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    await client.bmc.power.settled()
    assert client.chassis.boots == ["pxe"]
    assert (await client.get(SYSTEM))["Boot"]["BootSourceOverrideEnabled"] == "Disabled"
    for wrong in ({"BootSourceOverrideTarget": "Moon"}, {"BootSourceOverrideColour": "red"}):
        assert (await client.call("PATCH", SYSTEM, {"Boot": wrong}))[0] == 400


async def test_the_mains_can_be_taken_from_a_machine_that_ignores_its_power_commands(client: Client) -> None:
    await client.chassis.power_on(boot_device=None)
    client.bmc.set_fault("power-ignored")
    await client.call("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "ForceOff"})
    await client.bmc.power.settled()
    assert client.chassis.powered
    action = f"{ROOT}/Chassis/System.Embedded.1/Actions/Oem/DellOemChassis.ExtendedReset"
    body = {"ResetType": "PowerCycle", "FinalPowerState": "On"}
    assert (await client.call("POST", action, body))[0] == 204
    await client.bmc.power.settled()
    assert len(client.chassis.boots) == 2
    await until(lambda: client.bmc.resets == 1)


async def test_bios_attributes_are_applied_at_the_next_boot(client: Client) -> None:
    settings = f"{SYSTEM}/Bios/Settings"
    wanted = {"Attributes": {"SriovGlobalEnable": "Enabled"}}
    status, _, headers = await client.call(
        "PATCH", settings, {**wanted, "@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}}
    )
    assert status == 202
    job = headers["Location"]
    assert (await client.get(job))["JobState"] == "Scheduled"
    assert (await client.get(f"{SYSTEM}/Bios"))["Attributes"]["SriovGlobalEnable"] == "Disabled"
    assert (await client.call("PATCH", settings, wanted))[0] == 400  # one job at a time
    await client.chassis.power_on(boot_device=None)
    client.bmc.power.request(Action.RESET)
    await client.bmc.power.settled()
    async with asyncio.timeout(8):
        while (await client.get(job))["JobState"] != "Completed":
            await asyncio.sleep(0.02)
    assert (await client.get(f"{SYSTEM}/Bios"))["Attributes"]["SriovGlobalEnable"] == "Enabled"
    for wrong in ({"Nonsense": 1}, {"BootMode": "Floppy"}, {"SystemServiceTag": "X"}):
        assert (await client.call("PATCH", settings, {"Attributes": wrong}))[0] == 400


async def test_logs_come_in_pages_newest_first(client: Client) -> None:
    for number in range(120):
        client.bmc.sel.add(0x01, 0x01, bytes((0x59, number, 45)), event_type=0x01)
    entries: list[Body] = []
    path: str | None = f"{MANAGER}/LogServices/Sel/Entries"
    while path:
        page = await client.get(path)
        entries += page["Members"]
        path = page.get("Members@odata.nextLink")
    assert [entry["Id"] for entry in entries] == [str(number) for number in range(121, 0, -1)]
    assert (await client.call("POST", f"{MANAGER}/LogServices/Sel/Actions/LogService.ClearLog", {}))[0] == 204
    assert len(client.bmc.sel) == 1
    await client.call("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    newest = (await client.get(f"{MANAGER}/LogServices/Lclog/Entries"))["Members"][0]
    assert newest["MessageId"] == "SYS1003"


async def test_sensors_and_health_follow_what_is_forced(client: Client) -> None:
    await client.chassis.power_on(boot_device=None)
    assert (await client.get(SYSTEM))["Status"]["Health"] == "OK"
    client.bmc.sensors.force("GPU3 Temp", 95)
    assert (await client.get(SYSTEM))["Status"]["Health"] == "Critical"
    sensors = (await client.get(f"{ROOT}/Chassis/System.Embedded.1/Sensors"))["Members"]
    hot = next(sensor for sensor in sensors if sensor["Name"] == "GPU3 Temp")
    assert (hot["Reading"], hot["Status"]["Health"]) == (95, "Critical")
    report = await client.get(f"{ROOT}/TelemetryService/MetricReports/GPUMetrics")
    assert len(report["MetricValues"]) == 8
    thermal = await client.get(f"{ROOT}/Chassis/System.Embedded.1/Thermal")
    assert len(thermal["Fans"]) == 8


def image(component: str, version: str) -> bytes:
    return f"LAB FIRMWARE\ncomponent: {component}\nversion: {version}\n".encode()


async def versions(client: Client) -> dict[str, str]:
    body = await client.get(f"{ROOT}/UpdateService/FirmwareInventory?$expand=*($levels=1)")
    return {member["Name"]: member["Version"] for member in body["Members"]}


async def push(client: Client, data: bytes, parameters: str = "{}") -> tuple[int, Any, Any]:
    form = aiohttp.FormData()
    form.add_field("UpdateParameters", parameters, content_type="application/json")
    form.add_field("UpdateFile", data, filename="fw.bin", content_type="application/octet-stream")
    url = client.base + f"{ROOT}/UpdateService/MultipartUpload"
    async with client.http.post(url, data=form, ssl=False, headers=client.auth) as answer:
        return answer.status, await answer.text(), answer.headers


async def test_a_pushed_image_updates_what_it_is_for(client: Client) -> None:
    status, _, headers = await push(client, image("PSU.Slot.1", "00.1C.00"))
    assert status == 202
    task, _ = await client.settle(headers["Location"])
    assert task["TaskState"] == "Completed"
    assert (await versions(client))["Power Supply 1"] == "00.1C.00"
    status, _, headers = await push(client, b"not firmware")
    task, _ = await client.settle(headers["Location"])
    assert (task["TaskState"], "RED007" in task["Messages"][0]["Message"]) == ("Exception", True)
    assert (await push(client, b"x", "[]"))[0] == 400


async def test_a_fetched_image_may_wait_for_the_boot(client: Client) -> None:
    async def give(_request: web.Request) -> web.Response:
        return web.Response(body=image("BIOS.Setup.1-1", "2.5.4"))

    app = web.Application()
    app.router.add_get("/bios.img", give)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        update = f"{ROOT}/UpdateService/Actions/UpdateService.SimpleUpdate"
        status, _, headers = await client.call(
            "POST", update, {"ImageURI": f"http://127.0.0.1:{port}/bios.img", "TransferProtocol": "HTTP"}
        )
        assert status == 202
        assert (await client.call("GET", headers["Location"]))[1]["TaskState"] == "Pending"
        await client.call("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
        await client.bmc.power.settled()
        task, _ = await client.settle(headers["Location"])
        assert task["TaskState"] == "Completed"
        assert (await client.get(SYSTEM))["BiosVersion"] == "2.5.4"
        gone = {"ImageURI": f"http://127.0.0.1:{port}/nothing.img"}
        _, _, headers = await client.call("POST", update, gone)
        task, _ = await client.settle(headers["Location"])
        assert task["TaskState"] == "Exception"
    finally:
        await runner.cleanup()


async def test_the_screen_is_a_picture(client: Client) -> None:
    await client.chassis.power_on(boot_device=None)
    status, body, _ = await client.call(
        "POST", f"{LC}.ExportServerScreenShot", {"FileType": "ServerScreenShot"}
    )
    assert status == 200
    picture = Image.open(io.BytesIO(base64.b64decode(body["ServerScreenShotFile"])))
    assert picture.format == "PNG"
    assert picture.getbbox() is not None  # something is drawn
    assert (await client.call("POST", f"{LC}.ExportServerScreenShot", {"FileType": "Selfie"}))[0] == 400


async def test_the_evidence_bundle_needs_the_licence_and_comes_as_a_job(client: Client) -> None:
    wanted = {"ShareType": "Local", "Filter": "No", "DataSelectorArrayIn": ["HWData", "TTYLogs", "DebugLogs"]}
    status, body, _ = await client.call("POST", f"{LC}.SupportAssistCollection", wanted)
    assert (status, message_id(body)) == (400, "IDRAC.2.8.SRV085")
    assert (await client.call("POST", f"{LC}.SupportAssistAcceptEULA", {}))[0] == 202
    status, _, headers = await client.call("POST", f"{LC}.SupportAssistCollection", wanted)
    assert status == 202
    _, headers = await client.settle(headers["Location"])
    status, data, _ = await client.call("GET", headers["Location"])
    assert status == 200
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert {"HWData/sel.json", "TTYLogs/serial.log", "screen.png"} <= set(names)
    assert PASSWORD.encode() not in data


async def test_a_manager_reset_ends_sessions_and_is_silent_for_a_while(client: Client) -> None:
    login = {"UserName": USER, "Password": PASSWORD}
    _, _, headers = await client.call("POST", f"{ROOT}/SessionService/Sessions", login)
    assert (await client.call("POST", f"{MANAGER}/Actions/Manager.Reset", {"ResetType": "GracefulRestart"}))[
        0
    ] == 204
    await until(lambda: client.bmc.down)
    with pytest.raises((aiohttp.ClientError, TimeoutError)):
        await client.call("GET", ROOT, timeout=aiohttp.ClientTimeout(total=0.1))
    await until(lambda: not client.bmc.down)
    client.auth = {}
    token = {"headers": {"X-Auth-Token": headers["X-Auth-Token"]}}
    assert (await client.call("GET", SYSTEM, **token))[0] == 401


async def shown_certificate(client: Client) -> bytes:
    """Return the DER certificate of a fresh handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = client.base.removeprefix("https://").split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return certificate


async def test_the_certificate_is_its_own_and_can_expire(client: Client) -> None:
    endpoint = client.lab.rack.redfish("node-c")
    sound = await shown_certificate(client)
    digest = hashlib.sha256(sound).hexdigest().upper()
    assert endpoint.fingerprint.replace(":", "") == digest
    path = f"{MANAGER}/NetworkProtocol/HTTPS/Certificates/SecurityCertificate.1"
    assert (await client.get(path))["Fingerprint"] == endpoint.fingerprint
    client.bmc.set_fault("expired-certificate")
    expired = await shown_certificate(client)
    context = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(expired))
    with pytest.raises(aiohttp.ClientConnectorCertificateError, match="expired"):
        await client.http.get(client.base + ROOT, ssl=context)
    client.bmc.clear_faults()
    assert await shown_certificate(client) == sound


async def test_a_certificate_is_replaced_for_the_key_that_was_asked_for(client: Client) -> None:
    actions = f"{ROOT}/CertificateService/Actions/CertificateService"
    before = await shown_certificate(client)
    wrong = {"CertificateString": ssl.DER_cert_to_PEM_cert(before), "CertificateType": "PEM"}
    assert (await client.call("POST", f"{actions}.ReplaceCertificate", wrong))[0] == 400
    status, body, _ = await client.call("POST", f"{actions}.GenerateCSR", {})
    assert status == 200
    assert body["CSRString"].startswith("-----BEGIN CERTIFICATE REQUEST-----")
    assert (await client.call("POST", f"{actions}.ReplaceCertificate", wrong))[0] == 400
    assert await shown_certificate(client) == before


async def test_subscribers_get_events(client: Client) -> None:
    heard: list[Body] = []

    async def hear(request: web.Request) -> web.Response:
        heard.append(await request.json())
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/", hear)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        destination = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        status, _, headers = await client.call(
            "POST", f"{ROOT}/EventService/Subscriptions", {"Destination": destination, "Context": "rack 1"}
        )
        assert status == 201
        await client.call(
            "POST", f"{ROOT}/EventService/Actions/EventService.SubmitTestEvent", {"Message": "hello"}
        )
        assert [(event["Context"], event["Events"][0]["Message"]) for event in heard] == [("rack 1", "hello")]
        client.bmc.sensors.force("PS1 Status", 0x09)
        await until(lambda: len(heard) == 2)
        assert heard[1]["Events"][0]["MessageId"] == "PSU0003"
        assert (await client.call("DELETE", headers["Location"]))[0] == 200
        client.bmc.sensors.force("PS1 Status", 0x01)
        assert len(heard) == 2
    finally:
        await runner.cleanup()


async def test_faults_of_the_service(client: Client) -> None:
    bmc = client.bmc
    bmc.set_fault("not-ready", 7)
    status, body, headers = await client.call("GET", SYSTEM)
    assert (status, message_id(body), headers["Retry-After"]) == (503, "IDRAC.2.8.SYS518", "7")
    bmc.clear_faults()
    bmc.set_fault("html-error")
    status, body, headers = await client.call("GET", SYSTEM)
    assert (status, headers["Content-Type"].split(";")[0]) == (500, "text/html")
    bmc.clear_faults()
    bmc.set_fault("half-body")
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.call("GET", SYSTEM)
    bmc.clear_faults()
    bmc.set_fault("wrong-password")
    assert (await client.call("GET", SYSTEM))[0] == 401
    bmc.clear_faults()
    bmc.set_fault("no-sessions")
    login = {"UserName": USER, "Password": PASSWORD}
    assert (await client.call("POST", f"{ROOT}/SessionService/Sessions", login))[0] == 503
    bmc.clear_faults()
    bmc.set_fault("slow", 0.3)
    with pytest.raises(TimeoutError):
        await client.call("GET", SYSTEM, timeout=aiohttp.ClientTimeout(total=0.1))
    bmc.clear_faults()
    bmc.set_fault("silent")
    with pytest.raises(TimeoutError):
        await client.call("GET", SYSTEM, timeout=aiohttp.ClientTimeout(total=0.1))
    bmc.clear_faults()
    assert (await client.call("GET", SYSTEM))[0] == 200


async def test_collections_expand_and_select(client: Client) -> None:
    path = f"{ROOT}/UpdateService/FirmwareInventory"
    assert set((await client.get(path))["Members"][0]) == {"@odata.id"}
    expanded = await client.get(f"{path}?$expand=*($levels=1)")
    assert expanded["Members"][0]["Version"] == "2.3.5"
    chosen = await client.get(f"{SYSTEM}?$select=PowerState,SKU")
    assert {name for name in chosen if not name.startswith("@")} == {"PowerState", "SKU"}


async def test_bad_requests_are_told_and_counted(client: Client) -> None:
    assert (await client.call("GET", f"{ROOT}/Nowhere"))[0] == 404
    status, _, headers = await client.call("DELETE", SYSTEM)
    assert (status, headers["Allow"]) == (405, "GET, PATCH")
    url = client.base + SYSTEM
    async with client.http.patch(url, data=b"{not json", ssl=False, headers=client.auth) as answer:
        assert (answer.status, message_id(await answer.json())) == (400, "Base.1.12.MalformedJSON")
    assert ("DELETE", SYSTEM) in client.bmc.log.requests


async def test_a_viewer_reads_and_changes_nothing(client: Client) -> None:
    row = client.bmc.users.row(5)
    assert row is not None
    row.name, row.password, row.enabled, row.messaging = b"viewer", b"look", True, True
    row.privilege = Privilege.USER
    client.auth = basic("viewer", "look")
    assert (await client.call("GET", SYSTEM))[0] == 200
    status, body, _ = await client.call("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "On"})
    assert (status, message_id(body)) == (403, "Base.1.12.InsufficientPrivilege")
    assert not client.chassis.powered
