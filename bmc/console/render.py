"""Makes recordings readable: clean lines with their time, and the last screen."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pyte

from bmc.console.plain import Plain
from bmc.console.store import Chunk, Event

_MOVE = re.compile(rb"\x1b\[([0-9]{1,3});([0-9]{1,3})[Hf]")
_RUNS = re.compile(rb"[\x00-\x7f]+|[\x80-\xff]+")
_HIGH_AT_END = re.compile(rb"[\x80-\xff]+\Z")
_LONGEST_RUN = 512
_PIECE = 512
SMALL, LARGE = (80, 25), (100, 31)  # text mode, and the graphics text mode of UEFI firmware


class Decoder:
    """Reads console bytes as UTF-8; a run that is not goes by the PC's own code page, in which
    firmware draws its boxes. Never fails."""

    def __init__(self) -> None:
        self._held = b""

    def decode(self, data: bytes, *, final: bool = False) -> str:
        data = self._held + data
        run = _HIGH_AT_END.search(data)
        self._held = b""
        if run and not final and len(run.group()) < _LONGEST_RUN and _may_go_on(run.group()):
            data, self._held = data[: run.start()], run.group()
        return "".join(_decode_run(part) for part in _RUNS.findall(data))


def _decode_run(run: bytes) -> str:
    try:
        return run.decode()
    except UnicodeDecodeError:
        return run.decode("cp437")


def _may_go_on(run: bytes) -> bool:
    """Tell whether `run` is UTF-8 that only lacks its end."""
    try:
        run.decode()
    except UnicodeDecodeError as exc:
        return exc.reason == "unexpected end of data"
    return False


def stamp(time: float) -> str:
    """Return `time` (seconds since 1970) as UTC with milliseconds."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of clean text and when its first byte came."""

    time: float
    text: str


def lines(stream: Iterable[Chunk | Event]) -> Iterator[Line]:
    """Yield clean lines; events stand between them in dashes. Redrawn lines come once."""
    plain = Plain()
    pending, since, last = b"", 0.0, ""
    for entry in stream:
        if isinstance(entry, Event):
            if pending:
                yield Line(since, _text(pending))
            pending, last = b"", ""
            yield Line(entry.time, f"--- {entry.kind}{': ' if entry.text else ''}{entry.text} ---")
            continue
        if not pending:
            since = entry.time
        *whole, pending = (pending + plain.feed(entry.data)).split(b"\n")
        for raw in whole:
            text = _text(raw)
            if text.strip() and text != last:
                yield Line(since, text)
                last = text
            since = entry.time
    if pending.strip():
        yield Line(since, _text(pending))


def clean_text(stream: Iterable[Chunk | Event]) -> str:
    """Return the lines of a recording, each with its UTC time."""
    return "".join(f"{stamp(line.time)} {line.text}\n" for line in lines(stream))


def _text(raw: bytes) -> str:
    """Overwrite as a terminal does at each carriage return, then decode."""
    shown = ""
    for part in raw.split(b"\r"):
        text = Decoder().decode(part, final=True)
        shown = text + shown[len(text) :]
    return shown.rstrip()


def screen_size(data: bytes) -> tuple[int, int]:
    """Return columns and lines of the screen that the cursor's addresses need."""
    for row, column in itertools.islice(_MOVE.findall(data), 100_000):
        if SMALL[1] < int(row) <= LARGE[1] or SMALL[0] < int(column) <= LARGE[0]:
            return LARGE
    return SMALL


def screen(stream: Iterable[Chunk | Event], size: tuple[int, int] | None = None) -> pyte.Screen:
    """Return the screen as it stood at the end of `stream`."""
    data = b"".join(entry.data for entry in stream if isinstance(entry, Chunk))
    columns, rows = size or screen_size(data)
    shown = pyte.Screen(columns, rows)
    terminal = pyte.Stream(shown)
    text = Decoder().decode(data, final=True)
    for start in range(0, len(text), _PIECE):
        try:
            terminal.feed(text[start : start + _PIECE])
        except Exception:  # noqa: BLE001  pyte raises on some malformed sequences; the rest still counts
            terminal = pyte.Stream(shown)
    return shown


def screen_text(shown: pyte.Screen) -> str:
    """Return the screen's text without trailing blanks."""
    return "\n".join(row.rstrip() for row in shown.display).rstrip() + "\n"
