"""The last boots as they showed on the console: to replay, to read, and the last screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from bmc.console import cast
from bmc.console.boots import Boot, boots
from bmc.console.render import clean_text, screen
from provision.ticket.artifact import Cast, File, ScreenPicture, ScreenText, Text
from provision.ticket.collecting import Case, Collector, Lane, Outcome, Result

_MOST = 4


async def _collect(case: Case) -> Result:
    folder = case.access.settings.console_folder(case.node.name)
    files = await asyncio.to_thread(_files, folder, case.node.name)
    if not files:
        return Result((), Outcome.SKIPPED, "no console was recorded (invoke console.capture records one)")
    return Result(files)


def _files(folder: Path, node: str) -> tuple[File, ...]:
    shown = [boot for boot in boots(folder) if boot.data][-_MOST:]
    return tuple(file for number, boot in enumerate(reversed(shown)) for file in _boot(boot, number, node))


def _boot(boot: Boot, number: int, node: str) -> Iterator[File]:
    name = f"console/boot-{-number}"
    header, *rows = (json.loads(line) for line in cast.asciicast(boot.entries, node))
    yield File(f"{name}.cast", Cast(header, [(at, kind, text) for at, kind, text in rows]))
    yield File(f"{name}.txt", Text(clean_text(boot.entries).encode("utf-8", "surrogateescape")))
    if number == 0:
        shown = screen(boot.entries)
        yield File("console/last-screen.txt", ScreenText(shown))
        yield File("console/last-screen.png", ScreenPicture(shown))


CONSOLE = Collector("console", Lane.HERE, 180.0, _collect)
