"""What a node's screen shows: the BMC's own picture where there is one, else the rendered console."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from bmc.capability import BmcTarget, Picture
from bmc.console.boots import boot
from bmc.console.picture import png
from bmc.console.render import screen
from bmc.drivers import connect_redfish
from bmc.errors import BmcError, Unsupported
from bmc.ipmi.endpoint import Endpoint


class Source(StrEnum):
    """Where a picture comes from."""

    BMC = "bmc"  # the video output, as the BMC sees it; kept as sent
    CONSOLE = "console"  # the serial console's last screen, drawn by us


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture, where it comes from, and why it is not the BMC's own."""

    picture: Picture
    source: Source
    why: str = ""


async def shoot(target: BmcTarget, recordings: Path, *, endpoint: Endpoint | None = None) -> Shot:
    """Return the screen of `target`'s node; `recordings` is the node's console folder.

    Raises Unsupported where the BMC has no picture and no console was recorded.
    """
    try:
        async with connect_redfish(target, endpoint=endpoint) as bmc:
            return Shot(await bmc.screenshot(), Source.BMC)
    except BmcError as exc:
        why = exc.what()
        recorded = boot(recordings)
        if recorded is None:
            raise Unsupported(target.name, target.host, "a screenshot, and no console was recorded") from exc
    return Shot(Picture(png(screen(recorded.entries)), "image/png"), Source.CONSOLE, why)
