"""Nodes handed out, given back and replaced. The caller holds the transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from inventory import rows, schema
from inventory.admission import HELD, why_not_free
from inventory.errors import NotFree
from inventory.journal import Journal
from inventory.model import Pool
from inventory.moves import Mover, move
from inventory.records import AUTOMATION, Allocation, EventKind, Replacement


def load(connection: Connection, names: Iterable[str] | None = None) -> dict[str, Allocation]:
    """Return every allocation by node, of `names` only where given; those of one name by their places."""
    table = schema.allocation
    query = sa.select(table).order_by(table.c.name, table.c.place)
    found = connection.execute(query if names is None else query.where(table.c.node.in_(list(names))))
    return {row.node: rows.allocation(row) for row in found}


def hand_out(
    journal: Journal, connection: Connection, nodes: Sequence[str], name: str, *, who: str, why: str | None
) -> None:
    """Allocate all of `nodes` under `name`, in that order. Raises NotFree for the first that is not free."""
    taken = load(connection)
    first = 1 + max((one.place for one in taken.values() if one.name == name), default=-1)
    since = journal.clock()
    for place, node in enumerate(nodes, first):
        reason = why_not_free(rows.load_state(connection, node), taken.get(node))
        if reason is not None:
            raise NotFree(node, reason)
        taken[node] = Allocation(node, name, place, who, why, since)
        _insert(journal, connection, taken[node], actor=who)


def give_back(
    journal: Journal, connection: Connection, nodes: Sequence[str], *, by: str, why: str
) -> tuple[str, ...]:
    """Return to the pool those of `nodes` that are allocated, and name them."""
    taken = load(connection)
    returned = [node for node in nodes if node in taken]
    for node in returned:
        _delete(journal, connection, taken[node], by=by, why=why)
    return tuple(returned)


def shift(journal: Journal, connection: Connection, node: str, to: Pool, mover: Mover) -> None:
    """Move a free node from one admitted pool to the other. Raises NotFree."""
    state = rows.load_state(connection, node)
    source = Pool.SPARE if to is Pool.RELIABLE else Pool.RELIABLE
    reason = why_not_free(state, load(connection).get(node), pool=source)
    if reason is not None:
        raise NotFree(node, reason)
    move(journal, connection, state, to, mover)


def replace(
    journal: Journal, connection: Connection, pairs: Sequence[Replacement], *, by: str, why: str
) -> None:
    """Quarantine each failed node and put a spare in its place: into reliable, and into its allocation.

    A hold that a human placed, repair and retirement stay as they are. Raises NotFree where a
    spare is no longer one.
    """
    for pair in pairs:
        taken = load(connection)
        failed = rows.load_state(connection, pair.failed)
        if failed.pool not in HELD or (failed.pool, failed.pool_by) == (Pool.QUARANTINE, AUTOMATION):
            move(journal, connection, failed, Pool.QUARANTINE, Mover(by, why, serial=pair.serial))
        held = taken.get(pair.failed)
        if held is not None:
            replaced = f"replaced by {pair.spare}" if pair.spare else "left without a replacement"
            _delete(journal, connection, held, by=by, why=f"{replaced}: {why}")
        if pair.spare is None:
            continue
        spare = rows.load_state(connection, pair.spare)
        reason = why_not_free(spare, taken.get(pair.spare), pool=Pool.SPARE)
        if reason is not None:
            raise NotFree(pair.spare, reason)
        move(journal, connection, spare, Pool.RELIABLE, Mover(by, f"takes the place of {pair.failed}"))
        if held is not None:
            place = dataclasses.replace(held, node=pair.spare, since=journal.clock(), instead_of=pair.failed)
            _insert(journal, connection, place, actor=by)


def _insert(journal: Journal, connection: Connection, one: Allocation, *, actor: str) -> None:
    rows.add_allocation(connection, one)
    instead = f" in place of {one.instead_of}" if one.instead_of else ""
    reason = f": {one.why}" if one.why else ""
    journal.add(
        connection,
        EventKind.ALLOCATED,
        f"allocated to {one.name} for {one.who}{instead}{reason}",
        node=one.node,
        actor=actor,
        data={"name": one.name, "place": one.place, "instead_of": one.instead_of},
    )


def _delete(journal: Journal, connection: Connection, one: Allocation, *, by: str, why: str) -> None:
    connection.execute(schema.allocation.delete().where(schema.allocation.c.node == one.node))
    message = f"returned from {one.name}" + (f": {why}" if why else "")
    journal.add(
        connection, EventKind.RETURNED, message, node=one.node, actor=by, data={"name": one.name, "why": why}
    )
