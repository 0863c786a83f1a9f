"""The durable engine: one run is a tree of DBOS workflows, one child a node; where workers share a
database, one grandchild for the stages that a node goes through under one cap.

The only module that knows DBOS. Two halves share names and a database: the runner executes
(`start`, `stop`), every other process is a client (`submit`, `cancel`, `pending`) and never
launches an executor: a second executor with the same id would run live stages twice.

Arguments and results are stored by the engine in plain form, so only names and options pass here,
never a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import gc
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, SetEnqueueOptions, SetWorkflowID, WorkflowStatus
from dbos import error as dbos_error

from inventory.records import RunState
from provision import flow
from provision.engine_file import sqlite_engine
from provision.finish import FinishLine
from provision.flow import Cap
from provision.stages.job import Options

_log = logging.getLogger(__name__)

_APPLICATION = "muster"
# Pinned: by default it is a hash of the source, and an edit would strand every run under way.
_VERSION = "3"
# Runs and their nodes only wait for their parts. Where those stand in queues they stand in two others,
# or all places might be taken by who waits.
_RUNS = "runs"
_PARTS = "parts"  # in shares of the caps
_PLAYS = "plays"
_PLACES = 32  # in each share
# Each queue asks the database this often, idle or not: that is most of an idle runner's cost.
_POLL_S = 1.0
_ALLOCATIONS = 20_000  # between two looks of the garbage collector
_PENDING = ["PENDING", "ENQUEUED", "DELAYED"]
_ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]


# How often a step is repeated while nothing can be recorded: for about ten minutes.
_STORE_TRIES, _STORE_FIRST_S, _STORE_GROWTH = 12, 1.0, 1.6


_Result = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class _Outcome:
    """How a part ended: with a result, or with what went wrong."""

    result: _Result | None
    error: BaseException | None = None


@dataclasses.dataclass(slots=True)
class _Process:
    """What workflows of this process work with; set by `start`."""

    hands: flow.Hands | None = None
    client: Client | None = None
    finish: FinishLine[_Outcome] | None = None
    rooms: dict[str, asyncio.Semaphore] = dataclasses.field(default_factory=dict)
    ansible_slots: int = 1


_process = _Process()


def _hands() -> flow.Hands:
    if _process.hands is None:
        raise RuntimeError("the engine has not been started in this process")
    return _process.hands


def _store_is_away(error: BaseException) -> bool:
    return isinstance(error, flow.STORE_AWAY)


_patient = functools.partial(
    DBOS.step,
    retries_allowed=True,
    max_attempts=_STORE_TRIES,
    interval_seconds=_STORE_FIRST_S,
    backoff_rate=_STORE_GROWTH,
    should_retry=_store_is_away,
)
# A run may be interrupted as often as it takes: each time it goes on where it was.
_durable = functools.partial(DBOS.workflow, max_recovery_attempts=None)


@_patient(name="stage", preemptible=True)
async def _stage(name: str, node: str, run: str, options: dict[str, Any]) -> dict[str, Any]:
    return dataclasses.asdict(await flow.go_on(_hands(), name, node, run, Options(**options)))


async def _steps(names: Sequence[str], node: str, run: str, options: dict[str, Any]) -> _Result:
    result: _Result = {}
    for name in names:
        result = await _stage(name, node, run, options)
        if not result["ok"]:
            break
    return result


@_durable(name="leg_of_node")
async def _leg_of_node(names: list[str], node: str, run: str, options: dict[str, Any]) -> _Result:
    return _told(await _steps(names, node, run, options))


@_durable(name="node_of_run")
async def _node_of_run(node: str, run: str, options: dict[str, Any]) -> _Result:
    result: _Result = {}
    for leg in flow.legs(Options(**options)):
        result = await _capped(leg, node, run, options)
        if not result["ok"]:
            break
    return _told(result)


async def _capped(leg: flow.Leg, node: str, run: str, options: dict[str, Any]) -> _Result:
    """Take a node through one leg, under its cap.

    A runner that is alone counts its places itself. Workers that share a database count theirs in it,
    by a child on a queue, which costs each of them several times as much.
    """
    access = _hands().access
    share = None if leg.cap is Cap.ANSIBLE else flow.share(leg.cap, access.node(node), access)
    if not access.settings.shared:
        async with _room(share):
            return await _steps(leg.steps, node, run, options)
    queue = _PARTS if share else _PLAYS
    with SetWorkflowID(f"{DBOS.workflow_id}/{leg.cap}"), SetEnqueueOptions(queue_partition_key=share):
        handle = await DBOS.enqueue_workflow_async(queue, _leg_of_node, list(leg.steps), node, run, options)
    return await _result(handle.workflow_id)


def _room(share: str | None) -> asyncio.Semaphore:
    """Return the places of a share of a cap in this process; of the plays for None."""
    places = _PLACES if share else _process.ansible_slots
    return _process.rooms.setdefault(share or _PLAYS, asyncio.Semaphore(places))


async def _result(part: str) -> _Result:
    """Return the result of a part once it has ended. Raises what it raised.

    Not by the engine's own handle: that records each result once more, and looks for each by itself.
    """
    outcome = await _finish().passed(part)
    if outcome.error is not None:
        raise outcome.error
    return outcome.result or {}


def _told(result: _Result) -> _Result:
    """Tell those of this process who wait for the part at work here how it ends, and return that."""
    if DBOS.workflow_id is not None:
        _finish().ends(DBOS.workflow_id, _Outcome(result))
    return result


def _finish() -> FinishLine[_Outcome]:
    if _process.finish is None:
        raise RuntimeError("the engine has not been started in this process")
    return _process.finish


@_patient(name="end")
async def _end(run: str, state: str) -> None:
    store = _hands().access.store
    store.end_run(run, RunState(state))
    store.halt(run)


@_patient(name="bug")
async def _bug(node: str, run: str, what: str) -> None:
    flow.record_bug(_hands().access, node, run, what)


@_durable(name="run")
async def _run(run: str, nodes: list[str], options: dict[str, Any]) -> dict[str, int]:
    handles = []
    for node in nodes:
        with SetWorkflowID(f"{DBOS.workflow_id}/{node}"):
            handles.append(await DBOS.enqueue_workflow_async(_RUNS, _node_of_run, node, run, options))
        _finish().expect(handles[-1].workflow_id)
    failed = 0
    for node, handle in zip(nodes, handles, strict=True):
        try:
            result = await _result(handle.workflow_id)
        except dbos_error.DBOSAwaitedWorkflowCancelledError:
            result = {"ok": False}
        except Exception as error:  # noqa: BLE001  a bug at one node must not end the run of the others
            await _bug(node, run, f"{type(error).__name__}: {error}")
            result = {"ok": False}
        failed += not result["ok"]
    await _end(run, "failed" if failed else "done")
    return {"nodes": len(nodes), "failed": failed}


# --- the runner's half -----------------------------------------------------------------------


async def start(hands: flow.Hands, *, executor: str = "runner", ansible_slots: int = 4) -> None:
    """Launch the executor in this process, on the running event loop; unfinished runs go on.

    Call it once, and only where no other process executes under the same name.
    """
    _process.hands = hands
    _process.rooms, _process.ansible_slots = {}, ansible_slots
    url = hands.access.settings.engine_database
    config: DBOSConfig = {
        "name": _APPLICATION,
        "application_version": _VERSION,
        "executor_id": executor,
        "log_level": "ERROR",
        "system_database_url": url,
        "notification_listener_polling_interval_sec": 1.0,  # nothing waits for any; an end waits for this
    }
    engine = sqlite_engine(url)
    if engine is not None:
        config["system_database_engine"] = engine
    DBOS(config=config)
    # Before the launch, which goes on with what an earlier process left.
    migrate(url)
    _process.client = Client(url)
    _process.finish = FinishLine(_process.client.ended)
    DBOS.launch()
    register = functools.partial(DBOS.register_queue_async, polling_interval_sec=_POLL_S)
    await register(_RUNS)
    if hands.access.settings.shared:
        await register(_PARTS, partition_concurrency=_PLACES)
        await register(_PLAYS, worker_concurrency=ansible_slots)
    # What was loaded until now stays; the collector need not walk it for every few hundred new rows.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)


async def stop() -> None:
    """Stop executing. What is under way stays pending and is resumed by the next start."""
    if _process.hands is not None:
        await _process.hands.maas.close()
    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=0)
    if _process.client is not None:
        _process.client.close()


# --- the clients' half -----------------------------------------------------------------------


class Client:
    """Submits, cancels and observes runs from any process; executes nothing."""

    def __init__(self, url: str) -> None:
        engine = sqlite_engine(url)
        self._client = DBOSClient(system_database_url=url, system_database_engine=engine)

    def close(self) -> None:
        """Let the database go."""
        self._client.destroy()

    def submit(self, run: str, nodes: Sequence[str], options: Options) -> None:
        """Enqueue a run, or its next attempt. The same run and attempt twice is one run."""
        self._client.enqueue(
            {
                "queue_name": _RUNS,
                "workflow_name": "run",
                "workflow_id": workflow_id(run, options.attempt),
                "app_version": _VERSION,
            },
            run,
            list(nodes),
            dataclasses.asdict(options),
        )

    def cancel(self, run: str) -> int:
        """Cancel what is unfinished of a run, children included. Returns how many there were."""
        cancelled: set[str] = set()
        # A parent may have begun another child while it was being cancelled: look again.
        while unfinished := self._unfinished(prefix=f"{run}#"):
            self._client.cancel_workflows(unfinished, cancel_children=True)
            cancelled.update(unfinished)
        return len(cancelled)

    def adopt(self, executor: str) -> int:
        """Give what a dead executor had under way to those that live. Returns how much there was.

        Each part goes back to the queue that it came from, or the caps would be lost.
        """
        found = self._client.list_workflows(
            status="PENDING", executor_id=executor, load_input=False, load_output=False
        )
        by_queue: dict[str, list[str]] = {}
        for status in found:
            by_queue.setdefault(status.queue_name or _RUNS, []).append(status.workflow_id)
        for queue, ids in by_queue.items():
            self._client.resume_workflows(ids, queue_name=queue)
        return len(found)

    def executors(self) -> dict[str, int]:
        """Return how many parts each executor has under way, by its name."""
        found = self._client.list_workflows(status="PENDING", load_input=False, load_output=False)
        return dict(Counter(status.executor_id for status in found if status.executor_id))

    def pending(self, run: str | None = None) -> int:
        """Return how many workflows are not finished, of one run or of all."""
        return len(self._unfinished(prefix=f"{run}#" if run else None))

    def busy(self, run: str | None = None) -> bool:
        """Whether anything is not finished, of one run or of all: much cheaper than to count it."""
        return bool(self._unfinished(prefix=f"{run}#" if run else None, limit=1))

    def ended(self, parts: Collection[str]) -> dict[str, _Outcome]:
        """Return which of these parts have ended, and how; none where the database is away."""
        try:
            found = self._client.list_workflows(workflow_ids=list(parts), status=_ENDED, load_input=False)
        except sqlalchemy.exc.SQLAlchemyError as error:
            _log.warning("the engine's database does not answer: %s", error)
            return {}
        return {status.workflow_id: _outcome(status) for status in found}

    def _unfinished(self, prefix: str | None, limit: int | None = None) -> list[str]:
        found = self._client.list_workflows(
            status=_PENDING, workflow_id_prefix=prefix, load_input=False, load_output=False, limit=limit
        )
        return [status.workflow_id for status in found]


def _outcome(status: WorkflowStatus) -> _Outcome:
    if status.status == "SUCCESS":
        return _Outcome(status.output)
    if status.status == "CANCELLED":
        return _Outcome(None, dbos_error.DBOSAwaitedWorkflowCancelledError(status.workflow_id))
    return _Outcome(None, status.error or RuntimeError(f"{status.workflow_id} ended as {status.status}"))


def workflow_id(run: str, attempt: int) -> str:
    """Return the engine's id of one attempt of a run; ids are never used twice."""
    return f"{run}#{attempt}"


def migrate(url: str) -> None:
    """Make or update the engine's tables, so that a client can enqueue before any runner ran."""
    from dbos import run_dbos_database_migrations

    run_dbos_database_migrations(url)


async def quiet(client: Client, stop: asyncio.Event, *, quiet_s: float | None, look_s: float = 1.0) -> bool:
    """Return True once nothing has been pending for `quiet_s` seconds, False once `stop` is set.

    None: quiet is never enough. A database that does not answer is not quiet.
    """
    calm = 0.0
    while not stop.is_set():
        if quiet_s is not None:
            calm = 0.0 if await asyncio.to_thread(_busy, client) else calm + look_s
            if calm >= quiet_s:
                return True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), look_s)
    return False


def _busy(client: Client) -> bool:
    try:
        return client.busy()
    except sqlalchemy.exc.SQLAlchemyError as error:
        _log.warning("the engine's database does not answer: %s", error)
        return True
