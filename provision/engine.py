"""The durable engine: one run is a tree of DBOS workflows, one child a node, one grandchild a stage.

The only module that knows DBOS. Two halves share names and a database: the runner executes
(`start`, `stop`), every other process is a client (`submit`, `cancel`, `pending`) and never
launches an executor: a second executor with the same id would run live stages twice.

Arguments and results are stored by the engine in plain form, so only names and options pass here,
never a secret.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error

from inventory.records import RunState
from provision import flow
from provision.access import Access
from provision.ansible import PlayPool
from provision.flow import Cap
from provision.stages.job import Options

_APPLICATION = "muster"
# Pinned: by default it is a hash of the source, and an edit would strand every run under way.
_VERSION = "1"
_RUNS = "runs"
_NODES = "nodes"
_CAPS = {Cap.BMC: 32, Cap.MAAS: 32, Cap.GATE: 64}
_PENDING = ["PENDING", "ENQUEUED", "DELAYED"]


@dataclasses.dataclass(slots=True)
class _Hands:
    """What workflows of this process work with; set by `start`."""

    access: Access | None = None
    plays: PlayPool | None = None


_hands = _Hands()


def _access() -> Access:
    if _hands.access is None:
        raise RuntimeError("the engine has not been started in this process")
    return _hands.access


@DBOS.step(name="stage", preemptible=True)
async def _stage(name: str, node: str, run: str, options: dict[str, Any]) -> dict[str, Any]:
    if _hands.plays is None:
        raise RuntimeError("the engine has not been started in this process")
    result = await flow.run_step(_access(), _hands.plays, name, node, run, Options(**options))
    return dataclasses.asdict(result)


@DBOS.workflow(name="stage_of_node")
async def _stage_of_node(name: str, node: str, run: str, options: dict[str, Any]) -> dict[str, Any]:
    return await _stage(name, node, run, options)


@DBOS.step(name="may_go_on")
async def _may_go_on(run: str, options: dict[str, Any]) -> str:
    return flow.stop_reason(_access(), run, Options(**options))


@DBOS.workflow(name="node_of_run")
async def _node_of_run(node: str, run: str, options: dict[str, Any]) -> dict[str, Any]:
    wanted = Options(**options)
    result: dict[str, Any] = {}
    for step in flow.way(wanted):
        stop = await _may_go_on(run, options)
        if stop:
            return {"node": node, "stage": step.name, "ok": False, "detail": stop, "code": "max-fail"}
        result = await _capped(step, node, run, options)
        if not result["ok"]:
            break
    return result


async def _capped(step: flow.Step, node: str, run: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run one stage as a child under its cap and wait for it."""
    access = _access()
    key = flow.partition(step, access.node(node), access)
    with SetWorkflowID(f"{DBOS.workflow_id}/{step.name}"), SetEnqueueOptions(queue_partition_key=key):
        handle = await DBOS.enqueue_workflow_async(step.cap, _stage_of_node, step.name, node, run, options)
    result: dict[str, Any] = await handle.get_result(polling_interval_sec=options["poll_s"])
    return result


@DBOS.step(name="end")
async def _end(run: str, state: str) -> None:
    _access().store.end_run(run, RunState(state))


@DBOS.step(name="bug")
async def _bug(node: str, run: str, what: str) -> None:
    flow.record_bug(_access(), node, run, what)


@DBOS.workflow(name="run")
async def _run(run: str, nodes: list[str], options: dict[str, Any]) -> dict[str, int]:
    handles = []
    for node in nodes:
        with SetWorkflowID(f"{DBOS.workflow_id}/{node}"):
            handles.append(await DBOS.enqueue_workflow_async(_NODES, _node_of_run, node, run, options))
    failed = 0
    for node, handle in zip(nodes, handles, strict=True):
        try:
            result = await handle.get_result(polling_interval_sec=options["poll_s"])
        except dbos_error.DBOSAwaitedWorkflowCancelledError:
            result = {"ok": False}
        except Exception as error:  # noqa: BLE001  a bug at one node must not end the run of the others
            await _bug(node, run, f"{type(error).__name__}: {error}")
            result = {"ok": False}
        failed += not result["ok"]
    await _end(run, "failed" if failed else "done")
    return {"nodes": len(nodes), "failed": failed}


# --- the runner's half -----------------------------------------------------------------------


async def start(access: Access, plays: PlayPool, *, executor: str = "runner", ansible_slots: int = 4) -> None:
    """Launch the executor in this process, on the running event loop; unfinished runs go on.

    Call it once, and only with the runner lock held.
    """
    _hands.access, _hands.plays = access, plays
    config: DBOSConfig = {
        "name": _APPLICATION,
        "application_version": _VERSION,
        "executor_id": executor,
        "log_level": "ERROR",
        "system_database_url": access.settings.engine_database,
        "notification_listener_polling_interval_sec": 0.25,
    }
    engine = _sqlite_engine(access.settings.engine_database)
    if engine is not None:
        config["system_database_engine"] = engine
    DBOS(config=config)
    DBOS.launch()
    for cap, size in _CAPS.items():
        await DBOS.register_queue_async(cap, partition_concurrency=size, polling_interval_sec=0.2)
    await DBOS.register_queue_async(Cap.ANSIBLE, worker_concurrency=ansible_slots, polling_interval_sec=0.2)
    # Whoever waits for children must not stand in their queue.
    await DBOS.register_queue_async(_NODES, worker_concurrency=1024, polling_interval_sec=0.2)
    await DBOS.register_queue_async(_RUNS, worker_concurrency=64, polling_interval_sec=0.2)


def stop() -> None:
    """Stop executing. What is under way stays pending and is resumed by the next start."""
    DBOS.destroy(workflow_completion_timeout_sec=0)


# --- the clients' half -----------------------------------------------------------------------


class Client:
    """Submits, cancels and observes runs from any process; executes nothing."""

    def __init__(self, url: str) -> None:
        engine = _sqlite_engine(url)
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
        unfinished = self._unfinished(prefix=f"{run}#")
        if unfinished:
            self._client.cancel_workflows(unfinished, cancel_children=True)
        return len(unfinished)

    def pending(self, run: str | None = None) -> int:
        """Return how many workflows are not finished, of one run or of all."""
        return len(self._unfinished(prefix=f"{run}#" if run else None))

    def _unfinished(self, prefix: str | None) -> list[str]:
        found = self._client.list_workflows(
            status=_PENDING, workflow_id_prefix=prefix, load_input=False, load_output=False
        )
        return [status.workflow_id for status in found]


def workflow_id(run: str, attempt: int) -> str:
    """Return the engine's id of one attempt of a run; ids are never used twice."""
    return f"{run}#{attempt}"


def migrate(url: str) -> None:
    """Make or update the engine's tables, so that a client can enqueue before any runner ran."""
    from dbos import run_dbos_database_migrations

    run_dbos_database_migrations(url)


def _sqlite_engine(url: str) -> sqlalchemy.Engine | None:
    """Return an engine for a SQLite file that many processes share: WAL, and waits for locks."""
    if not url.startswith("sqlite"):
        return None
    engine = sqlalchemy.create_engine(url, pool_size=20)

    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    sqlalchemy.event.listen(engine, "connect", prepare)
    return engine


async def idle(client: Client, *, quiet_s: float, look_s: float = 1.0) -> None:
    """Return once nothing has been pending for `quiet_s` seconds."""
    quiet = 0.0
    while quiet < quiet_s:
        busy = await asyncio.to_thread(client.pending)
        quiet = 0.0 if busy else quiet + look_s
        await asyncio.sleep(look_s)
