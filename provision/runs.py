"""Runs from the outside: submit a plan, resume, cancel, and know whether one is under way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inventory.errors import UnknownRun as NotRecorded
from inventory.records import Run, RunState
from provision import runner
from provision.access import Access
from provision.errors import NodesBusy, UnknownRun
from provision.guards import Consent
from provision.planning import Plan
from provision.stages.job import Options

if TYPE_CHECKING:
    from provision import engine

_LETTERS = {"bringup": "b", "reimage": "i"}


def submit(access: Access, plan: Plan, consent: Consent) -> str:
    """Start a run of `plan` and return its id. Raises NodesBusy and RunnerStartFailed.

    `consent` proves that the operator agreed to exactly these nodes.
    """
    from provision import engine

    if set(consent.nodes) != set(plan.names):
        raise ValueError("the consent is for other nodes than the plan")
    engine.migrate(access.settings.engine_database)
    with closing(engine.Client(access.settings.engine_database)) as client:
        _refuse_busy(access, client, plan.names)
        run = _new_id(access, plan.kind)
        options = dataclasses.replace(
            plan.options, who=consent.who, reason=consent.reason, poll_s=poll(len(plan.nodes))
        )
        access.store.start_run(
            run, kind=plan.kind, nodes=plan.names, who=consent.who, reason=consent.reason,
            options=dataclasses.asdict(options),
        )  # fmt: skip
        if options.reimage:
            _leave_pools(access, run, plan.names, consent)
        client.submit(run, plan.names, options)
    runner.ensure(access.settings)
    return run


def _leave_pools(access: Access, run: str, nodes: Sequence[str], consent: Consent) -> None:
    """Take nodes out of their pools, holds included: the operator asked for a new start through the gate."""
    for name in nodes:
        if access.store.node(name).pool is not None:
            access.store.set_pool(name, None, by=consent.who, why=f"re-image: {consent.reason}", run=run)


def resume(access: Access, run: str, who: str) -> tuple[str, ...]:
    """Go on with a run: what was interrupted continues; what failed is tried again.

    Returns the nodes that are tried again. Raises UnknownRun, NodesBusy.
    """
    from provision import engine

    record = known(access, run)
    engine.migrate(access.settings.engine_database)
    with closing(engine.Client(access.settings.engine_database)) as client:
        if client.pending(run):
            runner.ensure(access.settings)
            return ()
        again = unfinished(access, run)
        if again:
            _refuse_busy(access, client, again)
            old = Options(**record.options)  # type: ignore[arg-type]
            options = dataclasses.replace(
                old, attempt=_next_attempt(access, run), who=who, poll_s=poll(len(again))
            )
            access.store.start_run(
                run, kind=record.kind, nodes=again, who=who, options=dataclasses.asdict(options)
            )
            client.submit(run, again, options)
            runner.ensure(access.settings)
    return again


def cancel(access: Access, run: str, who: str, reason: str) -> int:
    """Stop a run; stages under way are told to stop. Returns how many parts were unfinished."""
    from provision import engine

    known(access, run)
    with closing(engine.Client(access.settings.engine_database)) as client:
        count = client.cancel(run)
    access.store.event(
        None, "cancel", run=run, actor=who, message=f"cancelled: {reason or 'no reason given'}"
    )
    access.store.end_run(run, RunState.CANCELLED)
    return count


def keep_going(access: Access, run: str) -> Callable[[], bool]:
    """Return a function that says whether the run has work left, and wakes a runner if none is there."""
    from provision import engine

    client = engine.Client(access.settings.engine_database)

    def look() -> bool:
        if not client.pending(run):
            return False
        runner.ensure(access.settings)
        return True

    return look


def known(access: Access, run: str) -> Run:
    """Return the record of a run. Raises UnknownRun, naming the latest."""
    try:
        return access.store.run(run)
    except NotRecorded as error:
        latest = access.store.runs(limit=1)
        raise UnknownRun(run, latest[0].id if latest else None) from error


def unfinished(access: Access, run: str) -> tuple[str, ...]:
    """Return the nodes of a run that did not get where the run wanted them."""
    return tuple(
        name
        for name, progress in access.store.run_progress(run).items()
        if progress.failed is not None or not arrived(access, run, name)
    )


def arrived(access: Access, run: str, node: str) -> bool:
    """Whether the node got to the end of the run's way."""
    record = access.store.run(run)
    until = str(record.options.get("until", "pool"))
    progress = access.store.run_progress(run)[node]
    if progress.failed is not None:
        return False
    if until == "pool":
        state = access.store.node(node)
        return (
            progress.reached == "verified"
            and state.pool is not None
            and str(state.pool) in ("reliable", "spare")
        )
    return progress.reached == until


def poll(nodes: int) -> float:
    """Return how often, in seconds, the engine looks for finished stages: less often with more nodes."""
    return min(2.0, max(0.25, nodes / 256))


def _refuse_busy(access: Access, client: engine.Client, nodes: Sequence[str]) -> None:
    wanted = set(nodes)
    for record in access.store.runs(limit=50):
        if record.state is not RunState.RUNNING:
            continue
        shared = wanted & set(access.store.run_nodes(record.id))
        if shared and client.pending(record.id):
            raise NodesBusy(record.id, tuple(sorted(shared)))


def _next_attempt(access: Access, run: str) -> int:
    resumed = access.store.events(run=run, kinds=["run.resumed"])
    return 2 + len(resumed)


def _new_id(access: Access, kind: str) -> str:
    stem = f"{_LETTERS.get(kind, 'x')}-{datetime.now(UTC):%m%d-%H%M%S}"
    taken = {record.id for record in access.store.runs(limit=50)}
    number = 0
    run = stem
    while run in taken:
        number += 1
        run = f"{stem}-{number}"
    return run
