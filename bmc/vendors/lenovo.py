"""Lenovo XClarity Controller 2 and 3: platform log, screenshot by its own provider, service data."""

from __future__ import annotations

from bmc.capability import Picture
from bmc.errors import BadAnswer, Unsupported
from bmc.redfish.client import Client
from bmc.redfish.tasks import finished
from bmc.redfish.vendor import Layout, Vendor

_CAPTURE, _FILE = "/api/providers/rp_screenshot", "/download/HostScreenShot.png"
_FILE_XCC3 = "/web_download/Mini_ScreenShot.jpg"


def _serial(layout: Layout) -> str | None:
    return layout.system.text("SerialNumber") or layout.chassis.text("SerialNumber")


async def _screenshot(client: Client, _layout: Layout) -> Picture:
    """Have the screen captured, then fetch the file: a PNG, on XCC3 a JPEG."""
    try:
        await client.ask("GET", _CAPTURE)
        data = (await client.ask("GET", _FILE)).body
    except Unsupported:
        data = (await client.ask("GET", _FILE_XCC3)).body
    if data.startswith(b"\x89PNG"):
        return Picture(data, "image/png")
    if data.startswith(b"\xff\xd8"):
        return Picture(data, "image/jpeg")
    raise BadAnswer(client.node, client.host, "the screenshot is neither PNG nor JPEG")


async def _support_dump(client: Client, layout: Layout, deadline_s: float) -> tuple[str, bytes]:
    """Export the service data (FFDC) and fetch it."""
    path = layout.manager.link("Oem", "Lenovo", "ServiceData")
    service = await client.get(path) if path else None
    target = service.action("#LenovoServiceData.ExportServiceData") if service else None
    if target is None:
        raise Unsupported(client.node, client.host, "service data")
    body: dict[str, object] = {"InitializationNeeded": True, "DataCollectionType": "ProcessorDump"}
    done = await finished(client, await client.post(target, body), deadline_s)
    where = done.location
    if where is None:
        raise BadAnswer(client.node, client.host, "the service data has no place")
    return where.rsplit("/", 1)[-1], (await client.ask("GET", where)).body


LENOVO = Vendor(
    name="lenovo",
    words=("lenovo", "xclarity", "xcc"),
    serial=_serial,
    logs=("PlatformLog", "ActiveLog", "StandardLog", "SEL"),
    screenshot=_screenshot,
    support_dump=_support_dump,
)
