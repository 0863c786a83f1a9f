"""Dell iDRAC 9 and 10: service tag, lifecycle controller, screenshots, TSR, virtual AC cycle.

Actions by Dell's own published scripts and the public DellLCService schema.
"""

from __future__ import annotations

import asyncio
import base64
import binascii

from bmc.capability import Picture
from bmc.errors import BadAnswer, CommandRefused, Unsupported
from bmc.redfish.answer import Answer
from bmc.redfish.client import ROOT, Client
from bmc.redfish.resource import Resource
from bmc.redfish.tasks import finished
from bmc.redfish.vendor import Layout, Vendor

_DUMP_PARTS = ["DebugLogs", "HWData", "OSAppData", "TTYLogs", "TelemetryReports", "GPULogs"]
_OLD_SERVICE = f"{ROOT}/Dell/Managers/iDRAC.Embedded.1/DellLCService"
_READY_POLL_S = 2.0
_OFF_POLLS = 30


def _serial(layout: Layout) -> str | None:
    return layout.system.text("SKU") or layout.system.text("SerialNumber")


async def _lifecycle(client: Client, layout: Layout, action: str, body: dict[str, object]) -> Answer:
    """Post to the lifecycle controller, at its place since firmware 4 or the one before."""
    name = f"Actions/DellLCService.{action}"
    try:
        return await client.post(f"{layout.manager.path}/Oem/Dell/DellLCService/{name}", body)
    except Unsupported:
        return await client.post(f"{_OLD_SERVICE}/{name}", body)


async def _screenshot(client: Client, layout: Layout) -> Picture:
    answer = await _lifecycle(client, layout, "ExportServerScreenShot", {"FileType": "ServerScreenShot"})
    return _picture(client, answer)


def _picture(client: Client, answer: Answer) -> Picture:
    try:
        text = Resource("", answer.json()).text("ServerScreenShotFile")
        data = base64.b64decode(text or "", validate=True)
    except (ValueError, binascii.Error) as exc:
        raise BadAnswer(client.node, client.host, "the screenshot is no base64") from exc
    if not data.startswith(b"\x89PNG"):
        raise BadAnswer(client.node, client.host, "the screenshot is no PNG")
    return Picture(data, "image/png")


async def _ready(client: Client, layout: Layout) -> bool:
    """Ask the lifecycle controller whether it takes work: after a reset it does not for minutes."""
    answer = await _lifecycle(client, layout, "GetRemoteServicesAPIStatus", {})
    try:
        return Resource("", answer.json()).text("LCStatus") == "Ready"
    except ValueError as exc:
        raise BadAnswer(client.node, client.host, "the status of the lifecycle controller") from exc


async def _ac_cycle(client: Client, layout: Layout) -> None:
    """Take the mains away; the iDRAC wants the node off before."""
    target = layout.chassis.action("#DellOemChassis.ExtendedReset")
    if target is None:
        raise Unsupported(client.node, client.host, "a virtual AC cycle")
    reset = layout.system.action("#ComputerSystem.Reset")
    if reset is not None and (await client.get(layout.system.path)).text("PowerState") != "Off":
        await client.post(reset, {"ResetType": "ForceOff"})
        for _ in range(_OFF_POLLS):
            if (await client.get(layout.system.path)).text("PowerState") == "Off":
                break
            await asyncio.sleep(_READY_POLL_S / 4)
    await client.post(target, {"ResetType": "PowerCycle", "FinalPowerState": "On"})


async def _support_dump(client: Client, layout: Layout, deadline_s: float) -> tuple[str, bytes]:
    """Collect a TSR (SupportAssist) and fetch it over HTTPS."""
    body: dict[str, object] = {"ShareType": "Local", "Filter": "No", "DataSelectorArrayIn": _DUMP_PARTS}
    try:
        answer = await _lifecycle(client, layout, "SupportAssistCollection", body)
    except CommandRefused:  # the licence text was never accepted on this iDRAC
        await _lifecycle(client, layout, "SupportAssistAcceptEULA", {})
        answer = await _lifecycle(client, layout, "SupportAssistCollection", body)
    done = await finished(client, answer, deadline_s)
    path = done.location or f"{ROOT}/Dell/sacollect.zip"
    return path.rsplit("/", 1)[-1], (await client.ask("GET", path)).body


def _jobs(layout: Layout) -> str:
    return f"{layout.manager.path}/Oem/Dell/Jobs"


async def _clear_jobs(client: Client, layout: Layout) -> None:
    """Empty the job queue: one job that hangs keeps every later one from starting."""
    service = f"{layout.manager.path}/Oem/Dell/DellJobService"
    await client.post(f"{service}/Actions/DellJobService.DeleteJobQueue", {"JobID": "JID_CLEARALL"})


DELL = Vendor(
    name="dell",
    words=("dell", "idrac"),
    serial=_serial,
    logs=("Sel", "SEL"),
    screenshot=_screenshot,
    ac_cycle=_ac_cycle,
    support_dump=_support_dump,
    ready=_ready,
    jobs=_jobs,
    clear_jobs=_clear_jobs,
)
