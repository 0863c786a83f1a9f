"""Nodes between pools, and the breaker that counts them. The caller holds the write transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from inventory import rows, schema
from inventory.admission import ADMITTED, BREAKER_WINDOW, HELD, check_move, trips_breaker, why_stale
from inventory.errors import BreakerOpen
from inventory.journal import Journal
from inventory.model import Pool
from inventory.nodeset import fold
from inventory.records import AUTOMATION, Breaker, EventKind, NodeState


@dataclass(frozen=True, slots=True)
class Mover:
    """Who moves a node, why, in which run; `serial` keeps the hardware's history when it is moved."""

    by: str
    why: str
    run: str | None = None
    serial: str | None = None


def move(journal: Journal, connection: Connection, state: NodeState, pool: Pool | None, mover: Mover) -> None:
    """Put a node into a pool, or into none.

    Raises HeldByHuman, NotAdmissible, and BreakerOpen where automation would hold another
    reliable node while the breaker is open.
    """
    check_move(state, pool, by=mover.by)
    now = journal.clock()
    if mover.by == AUTOMATION:
        if state.pool == pool:
            return  # who placed it, why and since when stay
        if state.pool is Pool.RELIABLE and pool in HELD:
            found = breaker(connection, now)
            if found.tripped_at is not None:
                raise BreakerOpen(state.name, found.why)
    _move(journal, connection, state, pool, mover, now)


def evict_if_stale(journal: Journal, connection: Connection, state: NodeState, run: str | None) -> None:
    """Take the node out of an admitted pool that it no longer belongs in; no breaker keeps it there."""
    stale = why_stale(state) if state.pool in ADMITTED else None
    if stale is not None:
        _move(journal, connection, state, None, Mover(AUTOMATION, stale, run), journal.clock())


def breaker(connection: Connection, now: datetime) -> Breaker:
    """Return how the breaker stands: what tripped it, and who left within the window."""
    table = schema.event
    kinds = [EventKind.BREAKER_TRIPPED, EventKind.BREAKER_RESUMED]
    query = sa.select(table).where(table.c.kind.in_(kinds)).order_by(table.c.id.desc()).limit(1)
    last = connection.execute(query).first()
    since = now - BREAKER_WINDOW
    if last is not None and last.kind == EventKind.BREAKER_RESUMED:
        since = max(since, last.ts)
    left = _left_reliable(connection, since)
    if last is None or last.kind == EventKind.BREAKER_RESUMED:
        return Breaker(left=left)
    return Breaker(last.ts, last.message, left)


def _move(
    journal: Journal,
    connection: Connection,
    state: NodeState,
    pool: Pool | None,
    mover: Mover,
    now: datetime,
) -> None:
    left = state.pool
    if pool in HELD or (left in HELD and pool not in ADMITTED):
        # A yes from before does not count once the node was held or has been worked on.
        doubt = f"it was put into {pool}" if pool in HELD else f"it left {left}"
        state = replace(state, doubted_at=now, doubt=doubt)
    state = replace(state, pool=pool, pool_by=mover.by, pool_why=mover.why, pool_since=now)
    rows.save_state(connection, state)
    data = {"from": left, "to": pool, "why": mover.why}
    if mover.serial is not None:
        data["serial"] = mover.serial
    message = f"{left or 'no pool'} -> {pool or 'no pool'}: {mover.why}"
    journal.add(
        connection, EventKind.POOL, message, node=state.name, run=mover.run, actor=mover.by, data=data
    )
    if mover.by == AUTOMATION and left is Pool.RELIABLE and pool not in ADMITTED:
        _trip_if_too_many(journal, connection, now)


def _trip_if_too_many(journal: Journal, connection: Connection, now: datetime) -> None:
    found = breaker(connection, now)
    reliable = set(
        connection.execute(sa.select(schema.node.c.name).where(schema.node.c.pool == Pool.RELIABLE)).scalars()
    )
    before = len(reliable | set(found.left))
    if found.tripped_at is None and trips_breaker(len(found.left), before):
        message = (
            f"{len(found.left)} of {before} reliable nodes left within an hour by automation: "
            f"{fold(found.left)}; no further one is quarantined by itself"
        )
        journal.add(connection, EventKind.BREAKER_TRIPPED, message, data={"left": found.left, "of": before})


def _left_reliable(connection: Connection, since: datetime) -> tuple[str, ...]:
    table = schema.event
    query = sa.select(table.c.node, table.c.data).where(
        table.c.kind == EventKind.POOL, table.c.ts > since, table.c.actor == AUTOMATION
    )
    admitted = {str(pool) for pool in ADMITTED}
    return tuple(
        sorted(
            {
                row.node
                for row in connection.execute(query)
                if row.data.get("from") == Pool.RELIABLE and row.data.get("to") not in admitted
            }
        )
    )
