"""Which runs are under way, and whose nodes they hold. The caller holds the transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from inventory import rows, schema
from inventory.records import Run, RunState

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
