"""Watching a run: bars on a terminal, one line an event elsewhere, a summary at the end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from inventory.model import Stage
from inventory.nodeset import fold
from inventory.records import Event, Run, RunNode, RunState
from provision import advice, flow, runs
from provision.access import Access
from provision.cli import render
from provision.planning import LeftOut

_LOOK_S = 0.25
_BAR = 30
_SHOWN = (
    "stage.begun",
    "stage.reached",
    "stage.failed",
    "note",
    "pool",
    "verdict",
    "interrupted",
    "override",
)
STAGES = (
    Stage.REACHABLE,
    Stage.ENLISTED,
    Stage.COMMISSIONED,
    Stage.DEPLOYED,
    Stage.CONFIGURED,
    Stage.VERIFIED,
)


@dataclass(frozen=True, slots=True)
class Watching:
    """How to watch: `lines` one a event, `json` as JSON lines; `timeout_s` 0 waits for ever."""

    lines: bool
    json: bool = False
    timeout_s: float = 0.0

    @classmethod
    def here(cls, *, output: str = "table", timeout_s: float = 0.0) -> Watching:
        """Choose by what stderr is."""
        return cls(lines=not sys.stderr.isatty(), json=output == "json", timeout_s=timeout_s)


def watch(access: Access, run: str, how: Watching) -> bool:
    """Follow a run until it ends; True when it did, False when the time was up."""
    deadline = time.monotonic() + how.timeout_s if how.timeout_s else None
    pulse = _Pulse(runs.keep_going(access, run))
    if how.lines or how.json:
        for event in _events(access, run, deadline, pulse):
            _print_line(event, as_json=how.json)
    else:
        _draw(access, run, deadline, pulse)
    if pulse.stopped:
        runs.give_up(access, run)
    return access.store.run(run).state is not RunState.RUNNING


def _events(access: Access, run: str, deadline: float | None, has_work: _Pulse) -> Iterator[Event]:
    """Yield the run's events as they happen, until it ends or the deadline passes."""
    last = 0
    while True:
        ended = access.store.run(run).state is not RunState.RUNNING
        for event in access.store.events(run=run, after=last):
            last = event.id
            yield event
        if ended or not has_work() or (deadline is not None and time.monotonic() > deadline):
            return
        time.sleep(_LOOK_S)


class _Pulse:
    """Asks the engine now and then whether the run goes on; a run that lost its engine has ended."""

    def __init__(self, look: Callable[[], bool], every_s: float = 2.0) -> None:
        self._look = look
        self._every_s = every_s
        self._next = 0.0
        self._idle = 0

    def __call__(self) -> bool:
        if time.monotonic() < self._next:
            return True
        self._next = time.monotonic() + self._every_s
        # The engine's last write and the run's end are not one transaction: look thrice.
        self._idle = 0 if self._look() else self._idle + 1
        return not self.stopped

    @property
    def stopped(self) -> bool:
        """Whether the engine has had no work for the run for several looks."""
        return self._idle >= 3


def _print_line(event: Event, *, as_json: bool) -> None:
    if as_json:
        data = {
            "schema": render.SCHEMA,
            "ts": f"{event.ts:%Y-%m-%dT%H:%M:%SZ}",
            "run": event.run,
            "node": event.node,
            "stage": event.stage,
            "kind": event.kind,
            "actor": event.actor,
            "message": event.message,
        }
        sys.stdout.write(json.dumps(data) + "\n")
        sys.stdout.flush()
    elif event.kind in _SHOWN and event.node:
        sys.stderr.write(f"{event.ts:%Y-%m-%dT%H:%M:%SZ} {event.run} {event.node} {event.message}\n")
        sys.stderr.flush()


def _draw(access: Access, run: str, deadline: float | None, has_work: _Pulse) -> None:
    record = access.store.run(run)
    console = Console(stderr=True, highlight=False)
    last = ""
    last_id = 0
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        while True:
            ended = access.store.run(run).state is not RunState.RUNNING
            for event in access.store.events(run=run, after=last_id):
                last_id = event.id
                if event.kind in _SHOWN and event.node:
                    last = f"{event.ts:%H:%M:%S} {event.node} {event.message}"
            live.update(picture(record, access.store.run_progress(run), last, datetime.now(UTC)))
            if ended or not has_work() or (deadline is not None and time.monotonic() > deadline):
                return
            time.sleep(_LOOK_S)


def picture(record: Run, progress: dict[str, RunNode], last: str, now: datetime) -> Group:
    """Return the run as a few lines: one bar a stage. Meaning is in the numbers, never in colour alone."""
    total = len(progress)
    took = render.duration((now - record.started_at).total_seconds())
    lines = [Text(f"{record.id}  {record.selector}  {total} nodes  {took}    (Ctrl-C leaves it running)")]
    for stage in STAGES:
        done = sum(_past(node, stage) for node in progress.values())
        running = sum(node.in_stage == stage for node in progress.values())
        failed = sum(node.failed == stage for node in progress.values())
        full = int(_BAR * done / total) if total else 0
        bar = "█" * full + "░" * (_BAR - full)
        tail = f"   {running} running" if running else ""
        tail += f"   {failed} failed" if failed else ""
        lines.append(Text(f"  {stage:<13} {bar} {done:>4}/{total}{tail}", overflow="crop", no_wrap=True))
    lines.append(Text(f"  latest  {last}", overflow="ellipsis", no_wrap=True))
    return Group(*lines)


def _past(node: RunNode, stage: Stage) -> bool:
    return (
        node.reached is not None and STAGES.index(stage) <= STAGES.index(node.reached)
        if node.reached in STAGES
        else False
    )


def summary(access: Access, run: str, left_out: Sequence[LeftOut] = (), already: Sequence[str] = ()) -> int:
    """Print how a run ended, failures last, and return the exit status."""
    record = access.store.run(run)
    progress = access.store.run_progress(run)
    arrived = [name for name in progress if runs.arrived(access, run, name)]
    failed = {name: node for name, node in progress.items() if node.failed is not None}
    waiting = sorted(set(progress) - set(arrived) - set(failed))
    until = str(record.options.get("until", "pool"))
    word = "admitted" if until == flow.ADMIT else until
    write = sys.stderr.write
    write("\n")
    _count(word, arrived)
    _count("already", already)
    _count("unfinished", waiting)
    _count("left out", [entry.node for entry in left_out])
    _count("failed", list(failed))
    for group in _grouped(failed):
        _print_group(group, failed, access)
    took = render.duration(((record.ended_at or datetime.now(UTC)) - record.started_at).total_seconds())
    again = f" · resume: invoke bringup --resume {run}" if failed or waiting else ""
    write(f"{run} {record.state}, took {took}{again}\n")
    if failed or waiting:
        return advice.EXIT_NODES_FAILED
    return advice.EXIT_OK


def _count(word: str, nodes: Sequence[str]) -> None:
    if nodes:
        sys.stderr.write(f"{word:<11} {len(nodes):>3}   {fold(nodes)}\n")


def _grouped(failed: dict[str, RunNode]) -> list[list[str]]:
    """Group nodes that failed alike, each group and all groups in the order of their names."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for name, node in sorted(failed.items()):
        reason = (node.reason or "").replace(name, "NODE")
        groups.setdefault((str(node.failed), node.code or "", reason), []).append(name)
    return list(groups.values())


def _print_group(names: list[str], failed: dict[str, RunNode], access: Access) -> None:
    node = failed[names[0]]
    evidence = access.store.node(names[0]).evidence
    write = sys.stderr.write
    write(f"  {fold(names)}  {node.failed}  {node.code}: {node.reason}\n")
    if evidence:
        write(f"    evidence: {evidence}\n")
    write(f"    next: {(node.next or '').replace(names[0], fold(names))}\n")
