"""Runs: which are under way, whose nodes they hold, how they end. The caller holds the transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from inventory import rows, schema
from inventory.errors import UnknownRun
from inventory.journal import Journal
from inventory.nodeset import nearest
from inventory.records import EventKind, Run, RunNode, RunState

_GOING = schema.run.c.state == RunState.RUNNING


@dataclass(frozen=True, slots=True)
class Taken:
    """Why a run cannot begin: `run` holds `nodes`, or, where there are none, has this id itself."""

    run: str
    nodes: tuple[str, ...]


def taken(connection: Connection, id: str, nodes: Iterable[str], *, new: bool) -> Taken | None:
    """Return what stands in the way of run `id` with `nodes`, or None."""
    known = connection.execute(sa.select(schema.run.c.state).where(schema.run.c.id == id)).scalar()
    if known is not None and (new or known == RunState.RUNNING):
        return Taken(id, ())
    member = schema.run_node
    joined = sa.select(member.c.run, member.c.node).join(schema.run, schema.run.c.id == member.c.run)
    wanted = set(nodes)
    held: dict[str, list[str]] = {}
    for run, node in connection.execute(joined.where(_GOING).order_by(member.c.run, member.c.node)):
        if node in wanted:
            held.setdefault(run, []).append(node)
    return next((Taken(run, tuple(names)) for run, names in held.items()), None)


def going(connection: Connection) -> tuple[Run, ...]:
    """Return every run that has not ended, oldest first."""
    query = sa.select(schema.run).where(_GOING).order_by(schema.run.c.started_at, schema.run.c.id)
    return tuple(rows.run(row) for row in connection.execute(query))


def halt(connection: Connection, run: str, nodes: Iterable[str] | None) -> tuple[str, ...]:
    """Clear what the run was at work on; return the nodes that were in a stage. `nodes` None: all of it."""
    node, member = schema.node, schema.run_node
    busy = sa.select(node.c.name).where(node.c.run == run, node.c.in_stage.is_not(None))
    names = sorted(connection.execute(busy).scalars())
    if nodes is not None:
        names = sorted(set(names) & set(nodes))
    # One statement a node: a list of hundreds is more than some databases take as parameters.
    for name in names:
        connection.execute(node.update().where(node.c.name == name).values(in_stage=None, in_stage_at=None))
        one = (member.c.run == run) & (member.c.node == name)
        connection.execute(member.update().where(one).values(in_stage=None))
    return tuple(names)


def begin(journal: Journal, connection: Connection, run: Run, nodes: Iterable[str]) -> None:
    """Note that a run has begun, or, where its id is known, that it goes on."""
    event = EventKind.RUN_STARTED if rows.save_run(connection, run, nodes) else EventKind.RUN_RESUMED
    message = f"{run.kind} of {run.selector}" + (f": {run.reason}" if run.reason else "")
    journal.add(connection, event, message, run=run.id, actor=run.who, data=run.options)


def end(journal: Journal, connection: Connection, id: str, state: RunState) -> bool:
    """Note how a run ended; one that has ended stays as it did. Returns whether this ended it.

    Raises UnknownRun.
    """
    going = (schema.run.c.id == id) & _GOING
    ended = schema.run.update().where(going).values(state=state, ended_at=journal.clock())
    if connection.execute(ended).rowcount:
        journal.add(connection, EventKind.RUN_ENDED, f"run {state}", run=id)
        return True
    known(connection, id)
    return False


def known(connection: Connection, id: str) -> Run:
    """Return one run. Raises UnknownRun."""
    row = connection.execute(sa.select(schema.run).where(schema.run.c.id == id)).first()
    if row is None:
        raise UnknownRun(id, nearest(id, connection.execute(sa.select(schema.run.c.id)).scalars()))
    return rows.run(row)


def progress(connection: Connection, id: str) -> dict[str, RunNode]:
    """Return how every node of a run fares, by name. Raises UnknownRun."""
    table = schema.run_node
    found = connection.execute(sa.select(table).where(table.c.run == id).order_by(table.c.node)).all()
    if not found:
        known(connection, id)
    return {row.node: rows.run_node(row) for row in found}


def failures(connection: Connection, id: str) -> int:
    """Return how many nodes of a run have failed."""
    table = schema.run_node
    failed = (table.c.run == id) & table.c.failed.is_not(None)
    return connection.execute(sa.select(sa.func.count()).select_from(table).where(failed)).scalar() or 0
