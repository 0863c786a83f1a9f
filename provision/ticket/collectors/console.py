"""The last boots as they showed on the console: to replay, to read, and the last screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from bmc.console import cast
from bmc.console.boots import Boot, boots
from bmc.console.render import clean_text, screen
from bmc.console.store import Chunk, Event
from provision.ticket.artifact import Cast, File, ScreenPicture, ScreenText, Text
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result

_MOST = 4
_MOST_BYTES = 8 << 20  # of one boot; a node that floods its console says the same again and again


async def _collect(case: Case) -> Result:
    folder = case.access.settings.console_folder(case.node.name)
    files, cut = await asyncio.to_thread(_files, folder, case.node.name)
    if not files:
        return Result((), Outcome.SKIPPED, "no console was recorded (invoke console.capture records one)")
    return Result(tuple(files), Outcome.PARTIAL if cut else Outcome.COMPLETE, "; ".join(cut))


def _files(folder: Path, node: str) -> tuple[list[File], list[str]]:
    """Return the files, newest boot first, and which of them are not whole."""
    files: list[File] = []
    cut: list[str] = []
    shown = [boot for boot in boots(folder) if boot.data][-_MOST:]
    for number, boot in enumerate(reversed(shown)):
        entries = _end(boot)
        files += _boot(entries, f"console/boot-{-number}", node, last=number == 0)
        if len(entries) < len(boot.entries):
            cut.append(f"boot-{-number}: the last {_MOST_BYTES >> 20} MB of {len(boot.data) >> 20}")
    return files, cut


def _end(boot: Boot) -> tuple[Chunk | Event, ...]:
    size = 0
    for number, entry in enumerate(reversed(boot.entries)):
        size += len(entry.data) if isinstance(entry, Chunk) else 0
        if size > _MOST_BYTES:
            return boot.entries[len(boot.entries) - number :]
    return boot.entries


def _boot(entries: tuple[Chunk | Event, ...], name: str, node: str, *, last: bool) -> Iterator[File]:
    header, *rows = (json.loads(line) for line in cast.asciicast(entries, node))
    yield File(f"{name}.cast", Cast(header, [(at, kind, text) for at, kind, text in rows]))
    yield File(f"{name}.txt", Text(clean_text(entries).encode("utf-8", "surrogateescape")))
    if last:
        shown = screen(entries)
        yield File("console/last-screen.txt", ScreenText(shown))
        yield File("console/last-screen.png", ScreenPicture(shown))


CONSOLE = Collector("console", Lane.HERE, 180.0, _collect)
