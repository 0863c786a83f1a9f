"""A node's way through its stages: which, in what order, under which cap, and what a failure means."""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bmc.errors import BmcError
from inventory.admission import ADMITTED, HELD
from inventory.errors import BreakerOpen, HeldByHuman, InventoryError, StoreBusy, StoreFull, StoreUnreachable
from inventory.model import Node, Pool, Stage
from inventory.records import AUTOMATION
from provision import advice, evidence
from provision.access import Access
from provision.ansible import PlayPool
from provision.errors import NodeFailed, ProvisionError
from provision.maas.errors import MaasError
from provision.pools.mirror import mirror
from provision.stages import (
    admitted,
    commissioned,
    configured,
    deployed,
    enlisted,
    maas_wait,
    reachable,
    released,
    verified,
)
from provision.stages.job import NodeJob, Options, Reached
from provision.stages.site_maas import SiteMaas
from provision.stages.site_memory import SiteMemory

ADMIT = "pool"
RELEASE = "released"
# Nothing can be recorded now; nothing of it is the node's fault, and it passes.
STORE_AWAY = (StoreBusy, StoreFull, StoreUnreachable)


class Cap(StrEnum):
    """What a stage shares with others, and what bounds how many run at once."""

    BMC = "bmc"
    MAAS = "maas"
    ANSIBLE = "ansible"
    GATE = "gate"


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of the way and the cap it runs under."""

    name: str
    cap: Cap


_BRINGUP = (
    Step(Stage.REACHABLE, Cap.BMC),
    Step(Stage.ENLISTED, Cap.MAAS),
    Step(Stage.COMMISSIONED, Cap.MAAS),
    Step(Stage.DEPLOYED, Cap.MAAS),
    Step(Stage.CONFIGURED, Cap.ANSIBLE),
    Step(Stage.VERIFIED, Cap.GATE),
    Step(ADMIT, Cap.GATE),
)
STAGE_NAMES = tuple(step.name for step in _BRINGUP)


def way(options: Options) -> tuple[Step, ...]:
    """Return the steps of a run, in order, up to and with `options.until`."""
    steps = list(_BRINGUP[: STAGE_NAMES.index(options.until) + 1])
    if options.reimage:
        place = STAGE_NAMES.index(Stage.DEPLOYED)
        steps.insert(place, Step(RELEASE, Cap.MAAS))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Leg:
    """Steps that follow each other under one cap: a node that has its place keeps it to the last of them."""

    cap: Cap
    steps: tuple[str, ...]


def legs(options: Options) -> tuple[Leg, ...]:
    """Return the way of a run, as legs."""
    grouped = itertools.groupby(way(options), key=lambda step: step.cap)
    return tuple(Leg(cap, tuple(step.name for step in steps)) for cap, steps in grouped)


def share(cap: Cap, node: Node, access: Access) -> str:
    """Return which share of the cap a node counts against: its BMC subnet, its rack controller."""
    if cap is Cap.BMC:
        return f"{cap} {node.bmc.subnet}"
    if cap is Cap.MAAS:
        return f"{cap} {access.site.rack_of(node).controller}"
    if cap is Cap.GATE:
        # The gate bears twice as many at once as the others.
        return f"{cap} {zlib.crc32(node.name.encode()) % 2}"
    return str(cap)


@dataclass(frozen=True, slots=True)
class StepResult:
    """How a step ended. `ok` or a failure with its runbook code; plain values for the engine."""

    node: str
    stage: str
    ok: bool
    detail: str
    code: str = ""


Works = Mapping[str, Callable[[NodeJob], Awaitable[Reached]]]


def works(plays: PlayPool) -> Works:
    """Return what each step does to a node."""
    memory = SiteMemory()
    return {
        Stage.REACHABLE: reachable.reach,
        Stage.ENLISTED: enlisted.reach,
        Stage.COMMISSIONED: commissioned.reach,
        RELEASE: released.reach,
        Stage.DEPLOYED: deployed.reach,
        Stage.CONFIGURED: lambda job: configured.reach(job, plays),
        Stage.VERIFIED: lambda job: verified.reach(job, memory),
        ADMIT: lambda job: admitted.reach(job, memory),
    }


@dataclass(frozen=True, slots=True)
class Hands:
    """What the steps of this process work with."""

    access: Access
    maas: SiteMaas
    works: Works


async def go_on(hands: Hands, name: str, node: str, run: str, options: Options) -> StepResult:
    """Take one node through one step unless the run should take it no further. Raises as `run_step`."""
    stop = stop_reason(hands.access, node, run, options)
    if stop is not None:
        return StepResult(node, name, ok=False, detail=stop.reason, code=stop.code)
    return await run_step(hands, name, node, run, options)


async def run_step(hands: Hands, name: str, node: str, run: str, options: Options) -> StepResult:
    """Take one node through one step, record how it went, and return it.

    Raises only our own bugs, and STORE_AWAY: a step that could not be recorded is to be repeated.
    """
    store = hands.access.store
    job = _job(hands, node, run, options)
    stage = _stage_of(name)
    if name == stage:
        store.begin(node, stage, run=run)
    try:
        reached = await hands.works[name](job)
    except asyncio.CancelledError:
        store.event(node, "interrupted", run=run, message=f"{name} interrupted")
        store.halt(run, [node])
        raise
    except STORE_AWAY:
        raise
    except (ProvisionError, BmcError, MaasError, InventoryError) as error:
        return await _failed(job, name, as_failure(name, error))
    if name != stage:
        if name == RELEASE:
            job.note(f"{name}: {reached.detail}")
    elif job.state.pool in ADMITTED:
        store.observe(node, run=run, **reached.facts)
    else:
        store.reach(node, stage, run=run, detail=reached.detail, **reached.facts)
    return StepResult(node, name, ok=True, detail=reached.detail)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a node goes no further in a run although nothing failed there; `code` names the runbook."""

    code: str
    reason: str


def stop_reason(access: Access, node: str, run: str, options: Options) -> Stop | None:
    """Return why the run should not take the node another step, or None.

    Either too many have failed, or a human took the node out of use while the run was under way.
    """
    state = access.store.node(node)
    if state.pool in HELD and state.pool_by != AUTOMATION:
        return Stop("held", f"{state.pool} by {state.pool_by}: {state.pool_why or 'no reason given'}")
    if options.max_fail < 0:
        return None
    failed = access.store.run_failures(run)
    if failed > options.max_fail:
        return Stop("max-fail", f"{failed} nodes have failed, more than --max-fail allows")
    return None


def as_failure(stage: str, error: Exception) -> NodeFailed:
    """Return `error` as the failure of a stage, with the code that names its runbook."""
    if isinstance(error, NodeFailed):
        return error
    return NodeFailed(stage, advice.code_of(error), str(error), why=advice.causes(error))


def _stage_of(name: str) -> Stage:
    """Return the stage that a step belongs to: releasing leads to deployed, admission follows verified."""
    return {RELEASE: Stage.DEPLOYED, ADMIT: Stage.VERIFIED}.get(name) or Stage(name)


def _job(hands: Hands, name: str, run: str, options: Options) -> NodeJob:
    access = hands.access
    node = access.node(name)

    def note(line: str) -> None:
        access.store.event(name, "note", run=run, message=line)

    return NodeJob(
        node, access.profile(node), run, options, access, hands.maas, note, pace=access.settings.pace
    )


async def _failed(job: NodeJob, step: str, failure: NodeFailed) -> StepResult:
    """Save evidence, record the failure, and take the node out of the way of jobs."""
    store, name = job.access.store, job.node.name
    folder = job.access.settings.run_folder(job.run, name)
    if failure.code not in advice.BMC_CODES:
        await evidence.save_bmc(job.access.bmc(job.node), folder)
    if step in (Stage.COMMISSIONED, Stage.DEPLOYED) and failure.code not in advice.NOT_THE_NODE:
        await maas_wait.abandon(job)
    reason = failure.reason
    if failure.why and failure.why not in reason:
        reason = f"{reason} ({failure.why})"
    store.fail(
        name,
        _stage_of(step),
        run=job.run,
        code=failure.code,
        reason=reason,
        next=advice.next_for(failure.code, name),
        evidence=failure.evidence or str(folder),
    )
    if failure.code not in advice.NOT_THE_NODE:
        await quarantine(job.access, name, run=job.run, why=f"{step}: {failure.code}: {reason}")
    return StepResult(name, step, ok=False, detail=reason, code=failure.code)


def record_bug(access: Access, node: str, run: str, what: str) -> None:
    """Record that we, not the node, failed; the node stays where it is, and out of the pool."""
    state = access.store.node(node)
    access.store.fail(
        node,
        state.in_stage or state.failed_stage or Stage.REACHABLE,
        run=run,
        code="bug",
        reason=f"a bug of ours: {what}",
        next=advice.next_for("bug", node),
        evidence=str(access.settings.state / "runner.log"),
    )


async def quarantine(access: Access, node: str, *, run: str | None, why: str) -> None:
    """Put a failed node into quarantine, by automation; a human's hold stays as it is.

    Where too many reliable nodes left already it stays in the pool, and is not handed out.
    """
    serial = access.node(node).serial
    try:
        access.store.set_pool(node, Pool.QUARANTINE, by=AUTOMATION, why=why, run=run, serial=serial)
    except HeldByHuman:
        return
    except BreakerOpen as stopped:
        message = f"not quarantined ({why}): {stopped.why}"
        access.store.event(node, "breaker.withheld", run=run, message=message)
        return
    for problem in await mirror(access, [node]):
        access.store.event(node, "note", run=run, message=problem)
