"""console.*: capture a boot, show what was recorded, follow it, search a fleet's recordings."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bmc import screens
from bmc.capability import BmcTarget, PowerAction
from bmc.console import boots, cast, picture, search
from bmc.console import render as console_render
from bmc.console import store as recordings
from bmc.console.daemon import Daemon
from bmc.console.record import Recorder
from bmc.drivers import connect
from inventory.model import Node
from inventory.nodeset import fold
from provision import advice, consoles, guards
from provision.access import Access
from provision.cli import fleet
from provision.cli.command import Ended, command
from provision.cli.commands.bringup import seconds
from provision.cli.commands.power import save_evidence
from provision.cli.confirm import asking
from provision.cli.selection import NODES, POOL, RACK, open_site, select
from provision.consoles import Capture, Until
from provision.errors import BadRequest
from provision.guards import Consent
from provision.stages.reachable import check_identity

_SELECT = {"nodes": NODES, "rack": RACK, "pool": POOL}
_BOOT = "which boot: 0 the last, -1 the one before (default 0)"


@command(
    {
        **_SELECT,
        "cycle": "cycle the power first, so that a whole boot is captured",
        "until": "login: until a login prompt or a failure; failure: until a named cause",
        "for_": "at most this long, for example 10m",
        "steal": "take the console from whoever holds it",
        "reason": "why, for the record, with --cycle",
        "override": f"guard to pass, with the reason: {', '.join(guards.OVERRIDABLE)}",
        "yes": "do not ask",
    },
    lists=("rack",),
)
def capture(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    cycle: bool = False,
    until: str = "login",
    for_: str = "10m",
    steal: bool = False,
    reason: str = "",
    override: str = "",
    yes: bool = False,
) -> None:
    """Capture one boot of nodes for a ticket; what the console says is named."""
    access = open_site(prepare=True)
    if until not in (Until.LOGIN, Until.FAILURE):
        raise BadRequest("--until", f"{until} is nothing to wait for", "login or failure")
    chosen = select(access, nodes, rack, pool)
    consent = None
    if cycle:
        asked = asking(yes=yes, override=override, reason=reason)
        asyncio.run(guards.guard(access, chosen, action="console capture", asking=asked))
        plan = f"this cuts the power of {fold(node.name for node in chosen)}."
        consent = guards.ask(access, chosen, action="power cycle", plan=plan, asking=asked)
    results = _capture(access, chosen, Until(until), seconds(for_), steal=steal, consent=consent)
    for name, result in results.items():
        if not isinstance(result, Exception):
            sys.stdout.write(f"{name}  {_ending(result)}  {access.settings.console_folder(name)}\n")
    fleet.failures(results)
    if any(isinstance(result, Capture) and result.seen is Until.FAILURE for result in results.values()):
        raise Ended(advice.EXIT_NODES_FAILED)


def _capture(
    access: Access,
    chosen: Sequence[Node],
    until: Until,
    for_s: float,
    *,
    steal: bool,
    consent: Consent | None,
) -> dict[str, Capture | Exception]:
    known = {node.name: node for node in chosen}

    def cycling(target: BmcTarget) -> Callable[[Recorder], Awaitable[None]] | None:
        if consent is None:
            return None

        async def begin(recorder: Recorder) -> None:
            await save_evidence(access, target)
            async with connect(target) as bmc:
                identity = await bmc.identity()
                check_identity(target.name, expected=known[target.name].serial, found=identity.serial)
                recorder.mark("power cycle")
                access.store.observe(target.name, last_power_loss_at=datetime.now(UTC))
                message = f"power cycle for a capture: {consent.reason or 'no reason given'}"
                access.store.event(target.name, "power", actor=consent.who, message=message)
                await bmc.set_power(PowerAction.CYCLE)

        return begin

    async def one(target: BmcTarget) -> Capture:
        folder = access.settings.console_folder(target.name)
        return await consoles.capture(
            target, folder, until=until, for_s=for_s, steal=steal, begin=cycling(target)
        )

    return fleet.run(access, chosen, one, deadline_s=for_s + 60.0)


def _ending(result: Capture) -> str:
    if result.seen is Until.LOGIN:
        return f"login prompt, {result.bytes_kept} bytes"
    if result.cause is not None:
        return f"{result.cause.id}: {result.cause.title} ({result.cause.line.strip()})"
    return f"time is up, no cause named, {result.bytes_kept} bytes"


@command({**_SELECT, "boot": _BOOT, "raw": "the bytes as they came"}, lists=("rack",))
def show(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", boot: str = "0", raw: bool = False
) -> None:
    """Print what a node's console showed in its last boot, each line with its UTC time."""
    access = open_site()
    chosen = select(access, nodes, rack, pool)
    for node in chosen:
        recorded = _boot(access, node, boot)
        if raw:
            sys.stdout.buffer.write(recorded.data)
            continue
        if len(chosen) > 1:
            sys.stdout.write(f"=== {node.name} ===\n")
        sys.stdout.write(console_render.clean_text(recorded.entries))


def _boot(access: Access, node: Node, number: str) -> boots.Boot:
    if re.fullmatch(r"0|-\d+", number) is None:
        raise BadRequest("--boot", f"{number} is no boot", "0 is the last, -1 the one before")
    folder = access.settings.console_folder(node.name)
    found = boots.boot(folder, int(number))
    if found is None:
        how_many = len(boots.boots(folder))
        what = f"{node.name} has {how_many} recorded boots, none is number {number}"
        raise BadRequest("--boot", what, f"invoke console.capture --nodes {node.name}")
    return found


@command(
    {
        **_SELECT,
        "boot": "render this recorded boot: 0 the last, -1 the one before (default: ask the BMC now)",
        "out": "folder to write into",
        "text": "print a recorded screen as text",
    },
    lists=("rack",),
)
def screen(
    nodes: str = "",
    rack: Sequence[str] = (),
    pool: str = "",
    boot: str = "",
    out: str = ".",
    text: bool = False,
) -> None:
    """Write what a screen shows: the BMC's own picture where it has one, else the rendered console."""
    folder = Path(out)
    if not boot and not text:
        _shoot(nodes, rack, pool, folder)
        return
    access = open_site()
    for node in select(access, nodes, rack, pool):
        shown = console_render.screen(_boot(access, node, boot or "0").entries)
        if text:
            sys.stdout.write(console_render.screen_text(shown) + "\n")
            continue
        path = folder / f"{node.name}-screen.png"
        _write(path, picture.png(shown))
        sys.stdout.write(f"{node.name}  rendered console  {path}\n")


def _shoot(nodes: str, rack: Sequence[str], pool: str, folder: Path) -> None:
    access = open_site(prepare=True)

    async def one(target: BmcTarget) -> screens.Shot:
        return await screens.shoot(target, access.settings.console_folder(target.name))

    results = fleet.run(access, select(access, nodes, rack, pool), one)
    for name, shot in results.items():
        if isinstance(shot, screens.Shot):
            path = folder / f"{name}-screen.{shot.picture.media_type.rpartition('/')[2]}"
            _write(path, shot.picture.data)
            source = (
                "the BMC's picture" if shot.source is screens.Source.BMC else f"rendered console ({shot.why})"
            )
            sys.stdout.write(f"{name}  {source}  {path}\n")
    fleet.failures(results)


@command(
    {**_SELECT, "for_": "how long, for example 10m", "steal": "take the console from whoever holds it"},
    lists=("rack",),
)
def record(
    nodes: str = "", rack: Sequence[str] = (), pool: str = "", for_: str = "10m", steal: bool = False
) -> None:
    """Record consoles for a while; Ctrl-C ends it and keeps what was recorded."""
    length = seconds(for_)
    access = open_site(prepare=True)

    async def one(target: BmcTarget) -> Capture:
        folder = access.settings.console_folder(target.name)
        return await consoles.capture(target, folder, until=Until.TIME, for_s=length, steal=steal)

    results = fleet.run(access, select(access, nodes, rack, pool), one, deadline_s=length + 60.0)
    for name, result in results.items():
        if isinstance(result, Capture):
            sys.stdout.write(f"{name}  {_ending(result)}  {access.settings.console_folder(name)}\n")
    fleet.failures(results)


@command(
    {**_SELECT, "metrics": "file for Prometheus' text format, rewritten every few seconds"}, lists=("rack",)
)
def daemon(nodes: str = "", rack: Sequence[str] = (), pool: str = "", metrics: str = "") -> None:
    """Keep the consoles of many nodes recording until told to stop; run it under a service manager."""
    access = open_site(prepare=True)
    targets = [access.bmc(node) for node in select(access, nodes, rack, pool)]
    sys.stderr.write(f"recording {len(targets)} consoles into {access.settings.state / 'consoles'}\n")
    recording = Daemon(targets, access.settings.state / "consoles")
    asyncio.run(recording.run(Path(metrics) if metrics else None))


@command({**_SELECT, "boot": _BOOT, "out": "folder to write into"}, lists=("rack",))
def cast_(nodes: str = "", rack: Sequence[str] = (), pool: str = "", boot: str = "0", out: str = ".") -> None:
    """Write a boot as asciicast v2, for replay with asciinema."""
    access = open_site()
    for node in select(access, nodes, rack, pool):
        recorded = _boot(access, node, boot)
        path = Path(out) / f"{node.name}.cast"
        _write(path, "".join(cast.asciicast(recorded.entries, node.name)).encode())
        sys.stdout.write(f"{node.name}  {path}\n")


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise BadRequest("--out", f"{path}: {error.strerror}", "name a folder that can be written") from error


@command({**_SELECT, "lines": "how many lines at most (default 20)"}, lists=("rack",))
def tail(nodes: str = "", rack: Sequence[str] = (), pool: str = "", lines: str = "20") -> None:
    """Print the last recorded lines of consoles."""
    if not lines.isdigit():
        raise BadRequest("--lines", f"{lines} is no number", "for example 50")
    access = open_site()
    for node in select(access, nodes, rack, pool):
        for line in _lines(access, node)[-int(lines) :]:
            sys.stdout.write(f"{node.name}  {console_render.stamp(line.time)} {line.text}\n")


@command(
    {**_SELECT, "match": "regular expression; required", "since": "only this far back, for example 2h"},
    lists=("rack",),
)
def grep(nodes: str = "", rack: Sequence[str] = (), pool: str = "", match: str = "", since: str = "") -> None:
    """Search the recorded consoles of nodes."""
    try:
        pattern = re.compile(match)
    except re.error as error:
        raise BadRequest("--match", f"{match}: {error}", "see Python's regular expressions") from error
    if not match:
        raise BadRequest("--match", "it needs an expression", "for example --match 'Kernel panic'")
    oldest = time.time() - seconds(since) if since else 0.0
    access = open_site()
    hits = 0
    folders = {
        node.name: access.settings.console_folder(node.name) for node in select(access, nodes, rack, pool)
    }
    for hit in search.grep(folders, pattern, since=oldest):
        hits += 1
        sys.stdout.write(f"{hit.node}  {console_render.stamp(hit.time)} {hit.text}\n")
    sys.stderr.write(f"{hits} lines\n")


def _lines(access: Access, node: Node) -> list[console_render.Line]:
    entries: Iterable[recordings.Chunk | recordings.Event] = recordings.entries(
        access.settings.console_folder(node.name)
    )
    return list(console_render.lines(entries))
