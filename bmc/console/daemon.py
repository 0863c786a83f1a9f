"""Keeps the consoles of many nodes recording, for as long as it runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bmc.capability import BmcTarget
from bmc.console.record import Limits, Recorder
from bmc.errors import BmcError, RecordingFailed
from bmc.ipmi.endpoint import Endpoint

STARTS_AT_ONCE = 64
METRICS_EVERY_S = 15.0

_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 60.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Console:
    """One node: its recorder while there is one, and what former ones have counted."""

    target: BmcTarget
    recorder: Recorder | None = None
    bytes_before: int = 0
    gaps_before: int = 0
    problem: str = ""

    @property
    def active(self) -> bool:
        return self.recorder is not None and self.recorder.active

    @property
    def bytes_kept(self) -> int:
        return self.bytes_before + (self.recorder.bytes_kept if self.recorder else 0)

    @property
    def gaps(self) -> int:
        return self.gaps_before + (self.recorder.gaps if self.recorder else 0)


@dataclass(frozen=True, slots=True)
class State:
    """One console as the daemon sees it. `problem` says why it is not active."""

    node: str
    active: bool
    bytes_kept: int
    gaps: int
    problem: str


class Daemon:
    """Records every target into `folder`/<node>; a console that cannot be had is asked for again."""

    def __init__(self, targets: Iterable[BmcTarget], folder: Path, *, limits: Limits | None = None) -> None:
        self._folder = folder
        self._limits = limits or Limits()
        self._consoles = [_Console(target) for target in targets]
        self._starting = asyncio.Semaphore(STARTS_AT_ONCE)
        self._endpoint = Endpoint()

    async def run(self, metrics_file: Path | None = None) -> None:
        """Record until cancelled; then log out everywhere. Writes metrics where a file is given."""
        try:
            async with asyncio.TaskGroup() as group:
                for console in self._consoles:
                    group.create_task(self._keep(console))
                if metrics_file is not None:
                    group.create_task(self._report(metrics_file))
        finally:
            await self._endpoint.aclose()

    def states(self) -> tuple[State, ...]:
        return tuple(
            State(
                console.target.name,
                console.active,
                console.bytes_kept,
                console.gaps,
                "" if console.active else console.problem,
            )
            for console in self._consoles
        )

    def metrics(self) -> str:
        """Return the state in Prometheus' text format."""
        states = self.states()
        rows = []
        for name, kind, help_text, values in (
            ("active", "gauge", "Whether bytes of the console flow.", [int(s.active) for s in states]),
            ("bytes_total", "counter", "Console bytes kept.", [s.bytes_kept for s in states]),
            ("gaps_total", "counter", "Times the console was lost or taken.", [s.gaps for s in states]),
        ):
            rows += [f"# HELP muster_console_{name} {help_text}", f"# TYPE muster_console_{name} {kind}"]
            rows += [
                f'muster_console_{name}{{node="{state.node}"}} {value}'
                for state, value in zip(states, values, strict=True)
            ]
        sessions = self._endpoint.counts
        rows.append("# HELP muster_bmc_sessions_open Sessions that BMCs hold for this process.")
        rows += ["# TYPE muster_bmc_sessions_open gauge", f"muster_bmc_sessions_open {sessions.open}"]
        return "\n".join(rows) + "\n"

    async def _keep(self, console: _Console) -> None:
        pause = _FIRST_PAUSE_S
        while True:
            console.recorder = recorder = Recorder(
                console.target,
                self._folder / console.target.name,
                endpoint=self._endpoint,
                limits=self._limits,
            )
            try:
                async with self._starting:
                    await recorder.start()
                pause, console.problem = _FIRST_PAUSE_S, ""
                await recorder.ended()
            except BmcError as exc:
                self._told(console, exc)
            finally:
                with contextlib.suppress(BmcError):
                    await recorder.stop()
                console.bytes_before += recorder.bytes_kept
                console.gaps_before += recorder.gaps
                console.recorder = None
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LAST_PAUSE_S)

    def _told(self, console: _Console, exc: BmcError) -> None:
        """Log a problem when it is new: a BMC that is away for a day is one line."""
        if console.problem != exc.what():
            level = logging.ERROR if isinstance(exc, RecordingFailed) else logging.WARNING
            _log.log(level, "%s", exc)
        console.problem = exc.what()

    async def _report(self, path: Path) -> None:
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                new = path.with_suffix(".new")
                new.write_text(self.metrics(), encoding="utf-8")
                new.replace(path)
            except OSError as exc:
                _log.error("metrics not written to %s: %s", path, exc.strerror)
            await asyncio.sleep(METRICS_EVERY_S)
