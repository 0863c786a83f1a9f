"""Cuts a node's recordings into boots, so that `--boot -1` is the one before the last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bmc.console.store import Chunk, Event, EventKind, entries

_FIRMWARE = re.compile(
    rb"iPXE [0-9]|SeaBIOS \(version|BdsDxe: |SecStartup|U-Boot [0-9]|coreboot-|American Megatrends"
    rb"|Initializing Firmware|>>Start PXE|Open Source Network Boot Firmware|PXE-M0F"
)
_KERNEL = re.compile(rb"Linux version [0-9]")
_BANNER = re.compile(_FIRMWARE.pattern + b"|" + _KERNEL.pattern)


@dataclass(frozen=True, slots=True)
class Boot:
    """What the console showed of one boot. `number` is 0 for the last one, -1 for the one before."""

    number: int
    entries: tuple[Chunk | Event, ...]

    @property
    def started(self) -> float:
        return self.entries[0].time

    @property
    def ended(self) -> float:
        return self.entries[-1].time

    @property
    def data(self) -> bytes:
        return b"".join(entry.data for entry in self.entries if isinstance(entry, Chunk))


def boots(folder: Path) -> tuple[Boot, ...]:
    """Return the boots in a node's ring, oldest first; empty where nothing was recorded."""
    parts = list(_parts(entries(folder)))
    return tuple(Boot(index - len(parts) + 1, tuple(part)) for index, part in enumerate(parts))


def boot(folder: Path, number: int = 0) -> Boot | None:
    """Return one boot, None where the ring does not reach back that far."""
    found = boots(folder)
    return found[number - 1] if number <= 0 and len(found) > -number else None


def _parts(stream: Iterable[Chunk | Event]) -> Iterator[list[Chunk | Event]]:
    """Cut at marks of power, and within these where firmware or a kernel starts again."""
    part: list[Chunk | Event] = []
    for entry in stream:
        marked = isinstance(entry, Event) and entry.kind is EventKind.MARK and entry.text.startswith("power")
        if marked and any(isinstance(shown, Chunk) for shown in part):
            yield from _cut(part)
            part = []
        part.append(entry)
    if part:
        yield from _cut(part)


def _cut(part: list[Chunk | Event]) -> Iterator[list[Chunk | Event]]:
    data = b"".join(entry.data for entry in part if isinstance(entry, Chunk))
    cuts = _starts(data)
    piece: list[Chunk | Event] = []
    at = 0
    for entry in part:
        if isinstance(entry, Event):
            piece.append(entry)
            continue
        start, at = at, at + len(entry.data)
        while cuts and cuts[0] < at:
            cut = cuts.pop(0)
            if cut > start:
                piece.append(Chunk(entry.time, data[start:cut]))
            yield piece
            piece, start = [], cut
        piece.append(Chunk(entry.time, data[start:at]))
    yield piece


def _starts(data: bytes) -> list[int]:
    """Return where lines begin that start a boot: firmware after a kernel, a kernel after a kernel."""
    starts = []
    kernel_seen = False
    for banner in _BANNER.finditer(data):
        if kernel_seen:
            starts.append(data.rfind(b"\n", 0, banner.start()) + 1)
        kernel_seen = banner.group().startswith(b"Linux")
    return starts
