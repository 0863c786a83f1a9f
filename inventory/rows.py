"""Between table rows and records: the only place that knows both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from inventory import schema
from inventory.model import Pool, Stage
from inventory.records import Allocation, Answer, Event, NodeState, Run, RunNode, RunState, VerdictRecord

_STAGES = ("stage", "in_stage", "failed_stage")

# Built once: SQLAlchemy finds a statement it has seen in its cache, but not for nothing, and
# a bring-up of a large site writes tens of thousands of these.
_ONE_NODE = sa.select(schema.node).where(schema.node.c.name == sa.bindparam("the_name"))
_UPDATE_NODE = schema.node.update().where(schema.node.c.name == sa.bindparam("the_name"))
_UPDATE_PROGRESS = schema.run_node.update().where(
    schema.run_node.c.run == sa.bindparam("the_run"), schema.run_node.c.node == sa.bindparam("the_node")
)


def load_state(connection: Connection, name: str) -> NodeState:
    """Return the state of a node; a node never seen is racked."""
    row = connection.execute(_ONE_NODE, {"the_name": name}).first()
    return NodeState(name) if row is None else node_state(row)


def save_state(connection: Connection, state: NodeState) -> None:
    """Write the projection of a node. The caller holds the write transaction."""
    values = _values(state)
    if not connection.execute(_UPDATE_NODE, {**values, "the_name": state.name}).rowcount:
        connection.execute(schema.node.insert(), values)


def save_progress(
    connection: Connection, run: str | None, progress: RunNode, *, keep_reached: bool = False
) -> None:
    """Write how a node fares in a run; a node that is no part of the run is left out."""
    values = {**_values(progress), "the_run": run, "the_node": progress.node}
    if keep_reached:
        values.pop("reached")
    connection.execute(_UPDATE_PROGRESS, values)


def save_run(connection: Connection, run: Run, nodes: Iterable[str]) -> bool:
    """Write a run that begins, or set one that is known going again. Returns whether it is new."""
    table, members = schema.run, schema.run_node
    resumed = table.update().where(table.c.id == run.id).values(state=RunState.RUNNING, ended_at=None)
    new = not connection.execute(resumed).rowcount
    if new:
        connection.execute(table.insert(), {**_values(run), "options": plain(run.options)})
    there = set(connection.execute(sa.select(members.c.node).where(members.c.run == run.id)).scalars())
    missing = [{"run": run.id, "node": name} for name in nodes if name not in there]
    if missing:
        connection.execute(members.insert(), missing)
    return new


def add_allocation(connection: Connection, allocation: Allocation) -> None:
    """Write one allocation; the database refuses a second one of the same node."""
    connection.execute(schema.allocation.insert(), _values(allocation))


def _values(record: NodeState | RunNode | Run | Allocation) -> dict[str, object]:
    # dataclasses.asdict copies every value deeply; these are all immutable.
    return {field.name: getattr(record, field.name) for field in fields(record)}


def node_state(row: Row[Any]) -> NodeState:
    """Read a row of `node`."""
    values = dict(row._mapping)
    for column in _STAGES:
        values[column] = _stage(values[column])
    values["pool"] = None if row.pool is None else Pool(row.pool)
    values["last_verdict"] = None if row.last_verdict is None else Answer(row.last_verdict)
    return NodeState(**values)


def event(row: Row[Any]) -> Event:
    """Read a row of `event`."""
    return Event(**{**row._mapping, "stage": _stage(row.stage)})


def run(row: Row[Any]) -> Run:
    """Read a row of `run`."""
    return Run(**{**row._mapping, "state": RunState(row.state)})


def run_node(row: Row[Any]) -> RunNode:
    """Read a row of `run_node`."""
    values = dict(row._mapping)
    del values["run"]
    for column in ("in_stage", "reached", "failed"):
        values[column] = _stage(values[column])
    return RunNode(**values)


def verdict(row: Row[Any]) -> VerdictRecord:
    """Read a row of `verdict`."""
    return VerdictRecord(**{**row._mapping, "answer": Answer(row.answer), "reasons": tuple(row.reasons)})


def allocation(row: Row[Any]) -> Allocation:
    """Read a row of `allocation`."""
    return Allocation(**row._mapping)


def event_query(
    *, node: str | None, run: str | None, kinds: Iterable[str] | None, since: datetime | None
) -> sa.Select[Any]:
    """Return the query for events that match everything given."""
    table = schema.event
    query = sa.select(table)
    if node is not None:
        query = query.where(table.c.node == node)
    if run is not None:
        query = query.where(table.c.run == run)
    if kinds is not None:
        query = query.where(table.c.kind.in_([str(kind) for kind in kinds]))
    if since is not None:
        query = query.where(table.c.ts >= since)
    return query


def plain(value: object) -> object:
    """Return `value` as JSON holds it, times as text. Raises TypeError for all else, a Secret for one."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return schema.storable(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {schema.storable(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    raise TypeError(f"{type(value).__name__} cannot be stored in an event")


def _stage(value: str | None) -> Stage | None:
    return None if value is None else Stage(value)
