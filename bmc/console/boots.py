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
    """Start a part at firmware text after a kernel's, at a second kernel, at a mark of power."""
    part: list[Chunk | Event] = []
    kernel_seen = False
    for entry in stream:
        if isinstance(entry, Event):
            if entry.kind is EventKind.MARK and entry.text.startswith("power") and _shows(part):
                yield part
                part, kernel_seen = [], False
            part.append(entry)
            continue
        rest = entry.data
        start = 0
        for banner in _BANNER.finditer(entry.data):
            kernel = banner.group().startswith(b"Linux")
            if kernel_seen:
                cut = entry.data.rfind(b"\n", 0, banner.start()) + 1
                if cut > start:
                    part.append(Chunk(entry.time, entry.data[start:cut]))
                    start, rest = cut, entry.data[cut:]
                yield part
                part = []
            kernel_seen = kernel
        part.append(Chunk(entry.time, rest))
    if part:
        yield part


def _shows(part: list[Chunk | Event]) -> bool:
    return any(isinstance(entry, Chunk) for entry in part)
