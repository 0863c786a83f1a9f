"""worker and adopt: several hosts that execute the runs of one site on PostgreSQL."""

from __future__ import annotations

import sys
from contextlib import closing

from provision import runner, workers
from provision.cli.command import command
from provision.cli.confirm import asking
from provision.cli.selection import open_site
from provision.errors import BadRequest, Declined, Refused
from provision.settings import Settings


@command({})
def worker() -> None:
    """Execute runs of a PostgreSQL site on this host, in the foreground, until told to stop."""
    settings = _shared()
    sys.stderr.write(f"worker {settings.host} takes up runs; Ctrl-C or SIGTERM ends it, its nodes wait\n")
    sys.stderr.flush()
    runner.run_here(settings, quiet_s=None)


@command(
    {
        "host": "name of the dead worker's host; required",
        "reason": "why, for the record",
        "yes": "do not ask: you have seen that the host is off, or will not come back",
    }
)
def adopt(host: str = "", reason: str = "", yes: bool = False) -> None:
    """Give the nodes of a worker that is gone for good to the workers that are left."""
    if not host:
        raise BadRequest("--host", "it needs the name of a host", "invoke doctor")
    settings = _shared()
    if workers.alive(settings.engine_database, host):
        raise Refused("alive", host, "its worker still holds its connection to the database")
    from provision import engine

    access = open_site()
    engine.migrate(settings.engine_database)
    with closing(engine.Client(settings.engine_database)) as client:
        there = client.executors()
        if host not in there:
            known = ", ".join(sorted(there)) or "none"
            raise BadRequest("--host", f"{host} has nothing under way", f"those that have: {known}")
        _consent(host, there[host], yes=yes)
        count = client.adopt(host)
    message = f"adopted from {host}: {reason or 'no reason given'}"
    access.store.event(None, "adopt", actor=settings.who, message=message, data={"parts": count})
    sys.stdout.write(f"{count} parts of {host} go on elsewhere\n")
    runner.ensure(settings)


def _consent(host: str, parts: int, *, yes: bool) -> None:
    """A host that only lost its network may still be switching power: somebody must know that it is dead."""
    asked = asking(yes=yes)
    if asked.yes:
        return
    if asked.typed is None:
        raise Declined(f"adopt of {host} needs --yes where there is no terminal to ask at")
    prompt = f"{parts} parts go on elsewhere. Is {host} off, or gone for good?  type {host} to go on: "
    if asked.typed(prompt).strip() != host:
        raise Declined(f"adopt of {host} was not confirmed")


def _shared() -> Settings:
    settings = Settings.from_environment()
    if not settings.shared:
        raise BadRequest(
            "MUSTER_DATABASE_URL",
            "workers on several hosts need a PostgreSQL database; this site's state is a SQLite file",
            "set it to postgresql://USER@HOST/DATABASE on every host",
        )
    return settings
