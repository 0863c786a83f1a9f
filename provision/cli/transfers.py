"""How far transfers are, on a terminal: one line for a file, one bar a rack for many nodes."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from provision.cli import render

_EVERY_S = 0.25
_BAR = 30


class Line:
    """One line that is drawn over; nothing where there is no terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = False
        self._next = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            sys.stderr.write("\n")

    def at(self, done: int, total: int) -> None:
        """Say how many bytes of how many are through."""
        now = time.monotonic()
        if not sys.stderr.isatty() or (now < self._next and done < total):
            return
        self._next = now + _EVERY_S
        self._drawn = True
        percent = 100 * done // total if total else 100
        sys.stderr.write(f"\r  {self._name}  {_bar(done, total)} {percent:>3} %")
        sys.stderr.flush()


class RackBars:
    """One bar a rack; where there is no terminal, one line as each rack is complete."""

    def __init__(self, racks: Mapping[str, str], size: int) -> None:
        self._racks = racks
        self._size = size
        self._have = dict.fromkeys(racks, 0)
        self._begun = time.monotonic()
        self._told: set[str] = set()
        self._live = Live(console=Console(stderr=True, highlight=False), refresh_per_second=4)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live.is_started:
            self._live.update(self.picture(), refresh=True)
            self._live.stop()

    def at(self, node: str, have: int) -> None:
        """Say how many bytes a node has."""
        self._have[node] = have
        if self._live.is_started:
            self._live.update(self.picture())
        elif have == self._size:
            self._tell(self._racks[node])

    def picture(self) -> Group:
        """Return the racks as lines."""
        lines = [
            Text(self.line(rack), overflow="crop", no_wrap=True) for rack in sorted(set(self._racks.values()))
        ]
        return Group(*lines)

    def line(self, rack: str) -> str:
        """Return one rack's bar: its nodes' mean, and how many have it all."""
        have = [self._have[node] for node, where in self._racks.items() if where == rack]
        done = sum(one == self._size for one in have)
        took = render.duration(time.monotonic() - self._begun)
        return f"  {rack:<13} {_bar(sum(have), self._size * len(have))} {done:>4}/{len(have)}   {took}"

    def _tell(self, rack: str) -> None:
        have = [self._have[node] == self._size for node, where in self._racks.items() if where == rack]
        if all(have) and rack not in self._told:
            self._told.add(rack)
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            sys.stderr.write(f"{moment} {rack} {len(have)} of {len(have)} nodes have it\n")


def _bar(done: int, total: int) -> str:
    full = _BAR * done // total if total else _BAR
    return "█" * full + "░" * (_BAR - full)
