"""Searches a fleet's recordings, line by line as an operator reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bmc.console.render import lines
from bmc.console.store import entries


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that fits, on which node, and when it came (seconds since 1970)."""

    node: str
    time: float
    text: str


def grep(
    folders: Mapping[str, Path], pattern: re.Pattern[str], *, since: float = 0.0, until: float = float("inf")
) -> Iterator[Hit]:
    """Yield the lines of every node's ring that fit, node by node, oldest first.

    Marks of gaps and resets are lines too. `since` and `until` are seconds since 1970.
    """
    for node, folder in folders.items():
        for line in lines(entries(folder)):
            if since <= line.time <= until and pattern.search(line.text):
                yield Hit(node, line.time, line.text)
