"""HPE iLO 5 and 6: the integrated management log, a thumbnail of the screen, Active Health System."""

from __future__ import annotations

import io

from bmc.capability import Picture
from bmc.errors import BadAnswer, Unsupported
from bmc.redfish.client import Client
from bmc.redfish.vendor import Layout, Vendor

_THUMBNAIL = "/images/thumbnail.bmp"


def _serial(layout: Layout) -> str | None:
    return layout.system.text("SerialNumber") or layout.chassis.text("SerialNumber")


async def _screenshot(client: Client, _layout: Layout) -> Picture:
    """Fetch the thumbnail that the web page shows: small, a bitmap, but it is the screen."""
    from PIL import Image, UnidentifiedImageError  # heavy, and only iLOs need it

    answer = await client.ask("GET", _THUMBNAIL)
    try:
        picture = Image.open(io.BytesIO(answer.body)).convert("RGB")
    except (UnidentifiedImageError, OSError, ValueError) as exc:
        raise BadAnswer(client.node, client.host, "the thumbnail is no bitmap that can be read") from exc
    out = io.BytesIO()
    picture.save(out, "PNG")
    return Picture(out.getvalue(), "image/png")


async def _ac_cycle(client: Client, layout: Layout) -> None:
    """Cut the auxiliary power, which takes the iLO down too."""
    target = layout.system.text("Oem", "Hpe", "Actions", "#HpeComputerSystemExt.SystemReset", "target")
    if target is None:
        raise Unsupported(client.node, client.host, "an AC cycle")
    await client.post(target, {"ResetType": "AuxCycle"})


async def _support_dump(client: Client, layout: Layout, _deadline_s: float) -> tuple[str, bytes]:
    """Download the Active Health System log of the last week."""
    path = layout.manager.link("Oem", "Hpe", "Links", "ActiveHealthSystem")
    if path is None:
        raise Unsupported(client.node, client.host, "the Active Health System log")
    links = await client.get(path)
    download = links.text("Links", "AHSLocation", "extref")
    if download is None:
        raise Unsupported(client.node, client.host, "downloading the Active Health System log")
    answer = await client.ask("GET", f"{download}&days=7" if "?" in download else f"{download}?days=7")
    return "active-health.ahs", answer.body


HPE = Vendor(
    name="hpe",
    words=("hpe", "hewlett", "ilo"),
    serial=_serial,
    logs=("IML", "SL"),
    screenshot=_screenshot,
    ac_cycle=_ac_cycle,
    support_dump=_support_dump,
)
