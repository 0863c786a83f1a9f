"""What happened to every node: a projection that is read, and events that are only ever added."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, Unpack

import sqlalchemy as sa

from inventory import allocations, claims, moves, progress, rows, schema
from inventory.backup import back_up
from inventory.claims import Taken
from inventory.database import Database, open_database
from inventory.journal import Journal
from inventory.model import Pool, Stage
from inventory.moves import Mover
from inventory.nodeset import fold
from inventory.progress import Failure, Judgement
from inventory.records import (
    AUTOMATION,
    Allocation,
    Answer,
    Breaker,
    Event,
    EventKind,
    Facts,
    NodeState,
    Replacement,
    Run,
    RunNode,
    RunState,
    VerdictRecord,
)


def utc_now() -> datetime:
    """The time, aware and in UTC."""
    return datetime.now(UTC)


class Store:
    """The state of a site. Every call is one short transaction and may be made from any thread.

    Every call may raise StoreBusy, StoreFull, StoreBroken or StoreUnreachable; nothing of a
    call that raised was kept.
    """

    def __init__(
        self, database: Database, *, clock: Callable[[], datetime] = utc_now, host: str = ""
    ) -> None:
        self._database = database
        self._clock = clock
        self._journal = Journal(clock, host or platform.node())

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], datetime] = utc_now, busy_seconds: float = 10.0) -> Self:
        """Open `sqlite:///PATH` or `postgresql://…`, making or migrating its tables."""
        return cls(open_database(url, busy_seconds=busy_seconds), clock=clock)

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def backup(self, path: Path) -> None:
        """Write a copy as of now into one SQLite file; `inventory.backup.restore` takes it back."""
        back_up(self._database, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    # -- nodes ---------------------------------------------------------------------------------

    def node(self, name: str) -> NodeState:
        """Return what is known of a node; one never seen is racked and in no pool."""
        with self._database.read() as connection:
            return rows.load_state(connection, name)

    def nodes(self, names: Iterable[str] | None = None) -> dict[str, NodeState]:
        """Return every node that something was recorded of, by name; of `names` only where given."""
        query = sa.select(schema.node).order_by(schema.node.c.name)
        if names is not None:
            query = query.where(schema.node.c.name.in_(list(names)))
        with self._database.read() as connection:
            found = connection.execute(query)
            return {row.name: rows.node_state(row) for row in found}

    def begin(self, node: str, stage: Stage, *, run: str | None) -> None:
        """Note that a run is at work to bring the node to `stage`."""
        with self._database.write(durable=False) as connection:
            progress.begin(self._journal, connection, node, stage, run)

    def reach(
        self, node: str, stage: Stage, *, run: str | None, detail: str | None = None, **facts: Unpack[Facts]
    ) -> None:
        """Note that the node stands at `stage` now, and what was learned on the way.

        A stage below the present one is believed too: the node was taken back, and leaves
        the reliable and spare pools. What merely confirms an earlier stage is `observe`.
        """
        with self._database.write() as connection:
            progress.reach(self._journal, connection, node, stage, run, detail, **facts)

    def observe(self, node: str, *, run: str | None = None, **facts: Unpack[Facts]) -> None:
        """Note facts about a node without moving it to another stage."""
        with self._database.write() as connection:
            progress.observe(self._journal, connection, node, run, **facts)

    def fail(  # noqa: PLR0913 - one call is one record; a builder would only hide its fields
        self,
        node: str,
        stage: Stage,
        *,
        run: str | None,
        code: str,
        reason: str,
        next: str,
        evidence: str | None = None,
    ) -> None:
        """Note that the node did not reach `stage`, why, and what a human does next."""
        failure = Failure(stage, code, reason, next, evidence)
        with self._database.write() as connection:
            progress.fail(self._journal, connection, node, run, failure)

    # -- pools and verdicts --------------------------------------------------------------------

    def set_pool(
        self,
        node: str,
        pool: Pool | None,
        *,
        by: str,
        why: str,
        run: str | None = None,
        serial: str | None = None,
    ) -> None:
        """Put a node into a pool, or into none. `serial`: its hardware's, which may move to another node.

        `by` is `automation` or a user. Raises HeldByHuman where automation would lift what a
        human placed, NotAdmissible where reliable or spare is asked for without a fresh yes,
        BreakerOpen where automation would hold one reliable node too many.
        """
        with self._database.write() as connection:
            state = rows.load_state(connection, node)
            moves.move(self._journal, connection, state, pool, Mover(by, why, run, serial))

    def breaker(self) -> Breaker:
        """Return whether automatic quarantine of reliable nodes is stopped, and who left of late."""
        with self._database.read() as connection:
            return moves.breaker(connection, self._clock())

    def resume_breaker(self, *, by: str, why: str) -> Breaker:
        """Let automation quarantine reliable nodes again; what left until now is forgiven.

        Returns how the breaker stood. Raises ValueError for automation: this is a human's word.
        """
        if by == AUTOMATION:
            raise ValueError("automation cannot lift what stops automation")
        with self._database.write() as connection:
            stood = moves.breaker(connection, self._clock())
            self._journal.add(connection, EventKind.BREAKER_RESUMED, f"resumed: {why}", actor=by)
            return stood

    def record_verdict(  # noqa: PLR0913 - as above
        self,
        node: str,
        *,
        run: str | None,
        level: str,
        answer: str,
        reasons: Sequence[str],
        evidence: str | None,
        collected_at: datetime | None = None,
    ) -> None:
        """Keep an answer of the gate. `collected_at`: when the evidence was taken; now if not told."""
        judgement = Judgement(level, Answer(answer), reasons, evidence, collected_at)
        with self._database.write() as connection:
            progress.judge(self._journal, connection, node, run, judgement)

    def verdicts(self, node: str, *, limit: int = 20) -> tuple[VerdictRecord, ...]:
        """Return the last verdicts on a node, newest first."""
        table = schema.verdict
        query = sa.select(table).where(table.c.node == node).order_by(table.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return tuple(rows.verdict(row) for row in connection.execute(query))

    def last_verdicts(self) -> dict[str, VerdictRecord]:
        """Return the last verdict on every node that has one, by name."""
        table = schema.verdict
        last = sa.select(sa.func.max(table.c.id)).group_by(table.c.node)
        with self._database.read() as connection:
            found = connection.execute(sa.select(table).where(table.c.id.in_(last)).order_by(table.c.node))
            return {row.node: rows.verdict(row) for row in found}

    # -- allocations ---------------------------------------------------------------------------

    def allocations(self, names: Iterable[str] | None = None) -> dict[str, Allocation]:
        """Return every allocated node, by name; those of one allocation in the order of their places.

        Only those of `names` where given.
        """
        with self._database.read() as connection:
            return allocations.load(connection, names)

    def allocate(self, name: str, nodes: Sequence[str], *, who: str, why: str | None = None) -> None:
        """Hand out all of `nodes` or none under `name`, in that order.

        Raises NotFree for a node that is not reliable with a fresh yes, busy, or handed out already.
        """
        with self._database.write() as connection:
            allocations.hand_out(self._journal, connection, nodes, name, who=who, why=why)

    def give_back(self, nodes: Sequence[str], *, by: str, why: str = "") -> tuple[str, ...]:
        """Take nodes back from their allocations; returns those that were allocated."""
        with self._database.write() as connection:
            return allocations.give_back(self._journal, connection, nodes, by=by, why=why)

    def shift(self, node: str, to: Pool, *, by: str, why: str) -> None:
        """Move a free node from reliable to spare or back. Raises NotFree."""
        with self._database.write() as connection:
            allocations.shift(self._journal, connection, node, to, Mover(by, why))

    def replace(self, pairs: Sequence[Replacement], *, by: str, why: str) -> None:
        """Put a spare in the place of every failed node, all of them or none.

        The failed are quarantined. Raises NotFree where a spare is no longer one.
        """
        with self._database.write() as connection:
            allocations.replace(self._journal, connection, pairs, by=by, why=why)

    # -- events --------------------------------------------------------------------------------

    def event(
        self,
        node: str | None,
        kind: str,
        *,
        run: str | None = None,
        actor: str = AUTOMATION,
        message: str,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Add an event. `data` is plain JSON values; a Secret in it is a TypeError."""
        with self._database.write(durable=kind != "note") as connection:
            self._journal.add(connection, kind, message, node=node, run=run, actor=actor, data=data)

    def events(
        self,
        *,
        node: str | None = None,
        run: str | None = None,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        after: int | None = None,
        limit: int = 1000,
    ) -> tuple[Event, ...]:
        """Return events in the order they happened: the last `limit`, or the first ones `after` an id.

        Ids rise in the order of commits, so reading on `after` the last one seen misses nothing.
        """
        query = rows.event_query(node=node, run=run, kinds=kinds, since=since)
        table = schema.event
        if after is not None:
            query = query.where(table.c.id > after).order_by(table.c.id).limit(limit)
        else:
            query = query.order_by(table.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            found = [rows.event(row) for row in connection.execute(query)]
        return tuple(found if after is not None else reversed(found))

    # -- runs ----------------------------------------------------------------------------------

    def start_run(
        self,
        id: str,
        *,
        kind: str,
        nodes: Iterable[str],
        who: str,
        reason: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Note that a run has begun; an id that is known is a run resumed, and keeps how it began."""
        names = sorted(set(nodes))
        now = self._clock()
        begun = Run(id, kind, fold(names), now, None, RunState.RUNNING, who, reason, options or {})
        with self._database.write() as connection:
            claims.begin(self._journal, connection, begun, names)

    def claim_run(  # noqa: PLR0913 - as start_run
        self,
        id: str,
        *,
        kind: str,
        nodes: Sequence[str],
        who: str,
        reason: str | None = None,
        options: Mapping[str, object] | None = None,
        new: bool = True,
    ) -> Taken | None:
        """Begin a run, or resume one that has ended, unless a run under way holds one of its nodes.

        Looking and beginning are one transaction: of two commands at the same moment one begins,
        and the other is told who was there first.
        """
        names = sorted(set(nodes))
        now = self._clock()
        begun = Run(id, kind, fold(names), now, None, RunState.RUNNING, who, reason, options or {})
        with self._database.write() as connection:
            found = claims.taken(connection, id, names, new=new)
            if found is None:
                claims.begin(self._journal, connection, begun, names)
            return found

    def end_run(self, id: str, state: RunState) -> bool:
        """Note how a run ended; one that has ended stays as it did. Returns whether this ended it.

        Raises UnknownRun.
        """
        with self._database.write() as connection:
            return claims.end(self._journal, connection, id, RunState(state))

    def halt(self, run: str, nodes: Iterable[str] | None = None) -> tuple[str, ...]:
        """Note that a run is no longer at work on any stage of `nodes`, by default of all of its nodes.

        Returns those that were in one.
        """
        with self._database.write() as connection:
            return claims.halt(connection, run, nodes)

    def going(self) -> tuple[Run, ...]:
        """Return every run that has not ended, oldest first."""
        with self._database.read() as connection:
            return claims.going(connection)

    def run(self, id: str) -> Run:
        """Return one run. Raises UnknownRun."""
        with self._database.read() as connection:
            return claims.known(connection, id)

    def runs(self, limit: int = 20) -> tuple[Run, ...]:
        """Return the last runs, newest first."""
        table = schema.run
        query = sa.select(table).order_by(table.c.started_at.desc(), table.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return tuple(rows.run(row) for row in connection.execute(query))

    def run_nodes(self, id: str) -> tuple[str, ...]:
        """Return the names of the nodes of a run, sorted. Raises UnknownRun."""
        return tuple(self.run_progress(id))

    def run_progress(self, id: str) -> dict[str, RunNode]:
        """Return how every node of a run fares, by name. Raises UnknownRun."""
        with self._database.read() as connection:
            return claims.progress(connection, id)

    def run_failures(self, id: str) -> int:
        """Return how many nodes of a run have failed; none for a run that is not known."""
        with self._database.read() as connection:
            return claims.failures(connection, id)
