"""Runs from the outside: submit a plan, resume, cancel, and know whether one is under way."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
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

# Between a run's first record and the engine's knowing of it a command may pause this long.
_STARTING = timedelta(seconds=30)
_LETTERS = {"bringup": "b", "reimage": "i"}


def submit(access: Access, plan: Plan, consent: Consent) -> str:
    """Start a run of `plan` and return its id. Raises NodesBusy and RunnerStartFailed.

    `consent` proves that the operator agreed to exactly these nodes.
    """
    from provision import engine

    if set(consent.nodes) != set(plan.names):
        raise ValueError("the consent is for other nodes than the plan")
    options = dataclasses.replace(
        plan.options,
        who=consent.who,
        reason=consent.reason,
        override=consent.overridden,
        poll_s=poll(len(plan.nodes)),
    )
    engine.migrate(access.settings.engine_database)
    with closing(engine.Client(access.settings.engine_database)) as client:
        bury_lost(access, client)
        run = _claim_new(access, plan, options)
        with _or_interrupted(access, run):
            if options.reimage:
                _leave_pools(access, run, plan.names, consent)
            client.submit(run, plan.names, options)
    runner.ensure(access.settings)
    return run


def _claim_new(access: Access, plan: Plan, options: Options) -> str:
    """Record a new run under an id that no other has. Raises NodesBusy."""
    stem = f"{_LETTERS.get(plan.kind, 'x')}-{datetime.now(UTC):%m%d-%H%M%S}"
    for number in itertools.count():
        run = f"{stem}-{number}" if number else stem
        taken = access.store.claim_run(
            run, kind=plan.kind, nodes=plan.names, who=options.who, reason=options.reason,
            options=dataclasses.asdict(options),
        )  # fmt: skip
        if taken is None:
            return run
        if taken.nodes:
            raise NodesBusy(taken.run, taken.nodes)
    raise AssertionError("unreachable")


@contextmanager
def _or_interrupted(access: Access, run: str) -> Iterator[None]:
    """A run that could not be handed to the engine must not hold its nodes."""
    try:
        yield
    except BaseException:
        access.store.end_run(run, RunState.INTERRUPTED)
        raise


def bury_lost(access: Access, client: engine.Client) -> tuple[str, ...]:
    """End, as interrupted, runs that the engine knows nothing of any more; return their ids.

    Their command died before the engine had them, or the engine's database is another one. One
    that wrote something a moment ago may only just be starting.
    """
    lost = []
    for record in access.store.going():
        if client.busy(record.id):
            continue
        last = access.store.events(run=record.id, limit=1)
        if last and datetime.now(UTC) - last[-1].ts < _STARTING:
            continue
        if access.store.end_run(record.id, RunState.INTERRUPTED):
            access.store.halt(record.id)
            lost.append(record.id)
    return tuple(lost)


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
        if client.busy(run):
            runner.ensure(access.settings)
            return ()
        again = unfinished(access, run)
        if again:
            bury_lost(access, client)
            old = Options(**record.options)  # type: ignore[arg-type]
            options = dataclasses.replace(
                old, attempt=_next_attempt(access, run), who=who, poll_s=poll(len(again))
            )
            taken = access.store.claim_run(
                run, kind=record.kind, nodes=again, who=who, options=dataclasses.asdict(options), new=False
            )
            if taken is not None:
                raise NodesBusy(taken.run, taken.nodes or again)
            with _or_interrupted(access, run):
                client.submit(run, again, options)
            runner.ensure(access.settings)
    return again


def cancel(access: Access, run: str, who: str, reason: str) -> int:
    """Stop a run; stages under way are told to stop. Returns how many parts were unfinished.

    A run that has ended stays as it ended.
    """
    from provision import engine

    if known(access, run).state is not RunState.RUNNING:
        return 0
    engine.migrate(access.settings.engine_database)
    with closing(engine.Client(access.settings.engine_database)) as client:
        count = client.cancel(run)
    access.store.event(
        None, "cancel", run=run, actor=who, message=f"cancelled: {reason or 'no reason given'}"
    )
    access.store.end_run(run, RunState.CANCELLED)
    # What the runner is still about to stop clears itself; this is for where no runner is.
    access.store.halt(run)
    return count


def give_up(access: Access, run: str) -> bool:
    """End a run, as interrupted, that has no work left in the engine. Returns whether this ended it.

    For whoever has looked more than once: between the engine's last write and the run's end there
    is a moment.
    """
    if known(access, run).state is not RunState.RUNNING:
        return False
    ended = access.store.end_run(run, RunState.INTERRUPTED)
    access.store.halt(run)
    return ended


def keep_going(access: Access, run: str) -> Callable[[], bool]:
    """Return a function that says whether the run has work left, and wakes a runner if none is there."""
    from provision import engine

    client = engine.Client(access.settings.engine_database)

    def look() -> bool:
        if not client.busy(run):
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


def _next_attempt(access: Access, run: str) -> int:
    resumed = access.store.events(run=run, kinds=["run.resumed"])
    return 2 + len(resumed)
