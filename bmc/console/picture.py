"""Draws a terminal screen as a PNG: VGA's colours, Pillow's own fixed-width letters."""

from __future__ import annotations

import functools
import io
import unicodedata
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    import pyte

_WIDTH, _HEIGHT = 6, 11  # of Pillow's letters
_SCALE = 2
_CELL = (_WIDTH * _SCALE, (_HEIGHT + 1) * _SCALE)
_FOREGROUND, _BACKGROUND = "white", "black"

_Colour = tuple[int, int, int]
_DIM: dict[str, _Colour] = {
    "black": (0, 0, 0),
    "red": (170, 0, 0),
    "green": (0, 170, 0),
    "brown": (170, 85, 0),
    "blue": (0, 0, 170),
    "magenta": (170, 0, 170),
    "cyan": (0, 170, 170),
    "white": (170, 170, 170),
}
_BRIGHT: dict[str, _Colour] = {
    "black": (85, 85, 85),
    "red": (255, 85, 85),
    "green": (85, 255, 85),
    "brown": (255, 255, 85),
    "blue": (85, 85, 255),
    "magenta": (255, 85, 255),
    "cyan": (85, 255, 255),
    "white": (255, 255, 255),
}


def png(shown: pyte.Screen) -> bytes:
    """Return `shown` as a PNG."""
    width, height = _CELL
    image = Image.new("RGB", (shown.columns * width, shown.lines * height), _DIM[_BACKGROUND])
    draw = ImageDraw.Draw(image)
    for row in range(shown.lines):
        for column in range(shown.columns):
            letter = shown.buffer[row][column]
            front, back = _colours(letter)
            at = (column * width, row * height)
            if back != _DIM[_BACKGROUND]:
                draw.rectangle((*at, at[0] + width - 1, at[1] + height - 1), fill=back)
            if letter.data.strip():
                image.paste(front, at, _glyph(letter.data[0]))
            if letter.underscore:
                draw.line((at[0], at[1] + height - 2, at[0] + width - 1, at[1] + height - 2), fill=front)
    if not shown.cursor.hidden and shown.cursor.x < shown.columns:
        left, bottom = shown.cursor.x * width, (shown.cursor.y + 1) * height
        draw.rectangle((left, bottom - 4, left + width - 1, bottom - 1), fill=_DIM["white"])
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _colours(letter: pyte.Char) -> tuple[_Colour, _Colour]:
    front = _colour(letter.fg, _FOREGROUND, bright=letter.bold)
    back = _colour(letter.bg, _BACKGROUND, bright=False)
    return (back, front) if letter.reverse else (front, back)


def _colour(name: str, default: str, *, bright: bool) -> _Colour:
    """Return a colour by pyte's name: one of eight, "bright…", "default", or six hex digits."""
    name = name.replace("bfight", "bright")  # pyte's own spelling of one background
    if name == "default":
        name = default
    if name.startswith("bright"):
        return _BRIGHT.get(name.removeprefix("bright"), _BRIGHT["white"])
    if name in _DIM:
        return (_BRIGHT if bright else _DIM)[name]
    try:
        red, green, blue = bytes.fromhex(name)
    except ValueError:
        return _DIM[default]
    return red, green, blue


@functools.lru_cache(maxsize=1024)
def _glyph(letter: str) -> Image.Image:
    """Return the mask of one character; lines and blocks are drawn so that they join."""
    if 0x2500 <= ord(letter) <= 0x257F:
        return _box(unicodedata.name(letter))
    if 0x2580 <= ord(letter) <= 0x259F:
        return _block(ord(letter))
    arrow = _ARROWS.get(letter)
    mask = Image.new("L", _CELL)
    draw = ImageDraw.Draw(mask)
    if arrow is not None:
        width, height = _CELL
        draw.polygon([(x * (width - 1) // 4, y * (height - 1) // 4) for x, y in arrow], fill=255)
        return mask
    small = Image.new("1", (_WIDTH, _HEIGHT))
    try:
        ImageDraw.Draw(small).text((0, 0), letter, fill=1, font=_font())
    except UnicodeError:  # beyond the font: a frame says that something stands here
        ImageDraw.Draw(small).rectangle((1, 2, _WIDTH - 2, _HEIGHT - 3), outline=1)
    mask.paste(small.convert("L").resize((_CELL[0], _HEIGHT * _SCALE), Image.Resampling.NEAREST), (0, 1))
    return mask


_ARROWS = {
    "►": ((0, 1), (4, 2), (0, 3)),
    "▶": ((0, 1), (4, 2), (0, 3)),
    "◄": ((4, 1), (0, 2), (4, 3)),
    "▲": ((0, 3), (2, 1), (4, 3)),
    "↑": ((0, 3), (2, 1), (4, 3)),
    "▼": ((0, 1), (2, 3), (4, 1)),
    "↓": ((0, 1), (2, 3), (4, 1)),
}


@functools.cache
def _font() -> ImageFont.ImageFont:
    return ImageFont.load_default_imagefont()


def _box(name: str) -> Image.Image:
    """Draw a line-drawing character from what its Unicode name says."""
    width, height = _CELL
    mask = Image.new("L", _CELL)
    draw = ImageDraw.Draw(mask)
    across, down = width // 2, height // 2
    double = "DOUBLE" in name
    offsets = (-2, 2) if double else (0,)
    thick = 4 if "HEAVY" in name else 2
    left = "LEFT" in name or "HORIZONTAL" in name
    right = "RIGHT" in name or "HORIZONTAL" in name
    up = "UP" in name or "VERTICAL" in name
    below = "DOWN" in name or "VERTICAL" in name
    reach = 3 if double else 1
    for offset in offsets:
        if left or right:
            start, end = (0 if left else across - reach), (width if right else across + reach)
            draw.rectangle((start, down + offset - 1, end, down + offset + thick - 2), fill=255)
        if up or below:
            start, end = (0 if up else down - reach), (height if below else down + reach)
            draw.rectangle((across + offset - 1, start, across + offset + thick - 2, end), fill=255)
    return mask


def _block(code: int) -> Image.Image:
    """Draw the block elements U+2580 to U+259F."""
    width, height = _CELL
    mask = Image.new("L", _CELL)
    draw = ImageDraw.Draw(mask)
    if 0x2591 <= code <= 0x2593:  # shades
        mask.paste(64 * (code - 0x2590), (0, 0, width, height))
    elif code == 0x2580:
        draw.rectangle((0, 0, width, height // 2 - 1), fill=255)
    elif 0x2581 <= code <= 0x2588:  # lower eighths
        draw.rectangle((0, height - height * (code - 0x2580) // 8, width, height), fill=255)
    elif 0x2589 <= code <= 0x258F:  # left eighths
        draw.rectangle((0, 0, width * (0x2590 - code) // 8 - 1, height), fill=255)
    elif code == 0x2590:
        draw.rectangle((width // 2, 0, width, height), fill=255)
    else:
        draw.rectangle((0, 0, width // 2, height // 2), fill=255)
        draw.rectangle((width // 2, height // 2, width, height), fill=255)
    return mask
