"""A picture of the machine's screen: its display, else its serial text drawn on black."""

from __future__ import annotations

import io
import re

from PIL import Image, ImageDraw

from lab.bmc.bmc import Bmc
from lab.chassis import Screen

SIZE = (720, 400)
COLUMNS, LINES = 80, 25
_LINE_HEIGHT = 16
_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f]")
_CLEAR = b"\x1b[2J"
_TEXT_COLOUR = (170, 170, 170)


async def screenshot(bmc: Bmc) -> bytes:
    """Return PNG bytes."""
    chassis = bmc.spec.chassis
    if isinstance(chassis, Screen) and bmc.power.on:
        return await chassis.screenshot()
    return _draw(bmc.sol.tail if bmc.power.on else b"No signal")


def _draw(text: bytes) -> bytes:
    shown = _CONTROL.sub(b"", text.rpartition(_CLEAR)[2]).decode("latin-1")
    lines = [line[:COLUMNS] for line in shown.split("\n")][-LINES:]
    image = Image.new("RGB", SIZE)
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        draw.text((4, row * _LINE_HEIGHT), line, fill=_TEXT_COLOUR)
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()
