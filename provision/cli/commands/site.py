"""doctor: does everything that we need answer."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing

from inventory.nodeset import fold
from provision import advice, runner, runs, workers
from provision.access import Access
from provision.cli import render
from provision.cli.command import Ended, command
from provision.cli.selection import OUTPUT, open_site
from provision.maas.errors import MaasError
from provision.maas.transport import Limits
from provision.pools import owed

_TOOLS = ("ssh", "ansible-playbook", "setpriv")
_RESERVE = 1 << 30


@command({"output": OUTPUT})
def doctor(output: str = "table") -> None:
    """Look at what Muster itself needs: tools, disk, databases, MAAS, runs without a runner."""
    access = open_site()
    rows = [*_tools(), _disk(access), *_engine(access), _breaker(access), _owed(access), _maas(access)]
    render.answer("findings", rows, ("thing", "state", "detail", "next"), output)
    if any(row["state"] != "ok" for row in rows):
        sys.stdout.flush()
        raise Ended(advice.EXIT_NODES_FAILED)


def _finding(thing: str, ok: bool, detail: str, next_step: str = "") -> dict[str, object]:
    return {
        "thing": thing,
        "state": "ok" if ok else "attention",
        "detail": detail,
        "next": "" if ok else next_step,
    }


def _tools() -> Sequence[dict[str, object]]:
    return [
        _finding(
            f"tool {name}",
            shutil.which(name) is not None,
            shutil.which(name) or "not on PATH",
            f"install {name}",
        )
        for name in _TOOLS
    ]


def _disk(access: Access) -> dict[str, object]:
    free = shutil.disk_usage(access.settings.state).free
    return _finding(
        "state folder", free > _RESERVE, f"{free >> 20} MiB free in {access.settings.state}", "make room"
    )


def _engine(access: Access) -> Sequence[dict[str, object]]:
    """Who executes runs, which runs go on, and what was left by an executor that is gone."""
    from provision import engine

    settings = access.settings
    engine.migrate(settings.engine_database)
    with closing(engine.Client(settings.engine_database)) as client:
        lost = runs.bury_lost(access, client)
        if settings.shared:
            alive = workers.any_alive(settings.engine_database)
            rows = [_finding("workers", alive, "at work" if alive else "none", "invoke worker")]
            rows += _executors(settings.engine_database, client.executors())
        else:
            alive = runner.running(settings.state)
            rows = [_finding("runner", True, "at work" if alive else "not running; started when needed")]
        again = "invoke bringup --resume"
        rows += [_finding(f"run {run}", False, "lost: interrupted", f"{again} {run}") for run in lost]
        for record in access.store.going():
            pending = client.pending(record.id)
            who = "workers" if settings.shared else "runner"
            detail = f"{pending} parts unfinished, {who} {'at work' if alive else 'gone'}"
            rows.append(_finding(f"run {record.id}", alive, detail, f"{again} {record.id}"))
    return rows


def _executors(url: str, parts: Mapping[str, int]) -> Sequence[dict[str, object]]:
    """Say which workers have something under way, and which of them are gone."""
    found = []
    for host, count in sorted(parts.items()):
        alive = workers.alive(url, host)
        detail = f"{count} parts under way" + ("" if alive else ", and it is gone")
        found.append(
            _finding(f"worker {host}", alive, detail, f"start it again, or: invoke adopt --host {host}")
        )
    return found


def _owed(access: Access) -> dict[str, object]:
    names = owed.load(access.settings.state)
    detail = f"not shown for {fold(names)}" if names else "MAAS shows them"
    return _finding("pools", not names, detail, "invoke pool.mirror")


def _breaker(access: Access) -> dict[str, object]:
    breaker = access.store.breaker()
    detail = f"{len(breaker.left)} nodes left the reliable pool by automation within an hour"
    return _finding(
        "automatic quarantine",
        breaker.tripped_at is None,
        breaker.why or detail,
        "docs/runbooks/breaker.md",
    )


def _maas(access: Access) -> dict[str, object]:
    async def ask() -> str:
        async with access.maas_within(Limits(call_timeout_s=10.0, deadline_s=15.0)) as maas:
            return str(await maas.version())

    try:
        return _finding("MAAS", True, asyncio.run(ask()))
    except MaasError as error:
        return _finding("MAAS", False, str(error), advice.next_after(error))
