"""What the state store remembers, as values. Times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from inventory.model import Pool, Stage

AUTOMATION = "automation"  # `by` and `actor` of whatever no human asked for


class Answer(StrEnum):
    """What the gate said."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RunState(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class EventKind(StrEnum):
    """The kinds that the store writes by itself; others may add their own."""

    STAGE_BEGUN = "stage.begun"
    STAGE_REACHED = "stage.reached"
    STAGE_FAILED = "stage.failed"
    OBSERVED = "observed"
    POOL = "pool"
    VERDICT = "verdict"
    RUN_STARTED = "run.started"
    RUN_RESUMED = "run.resumed"
    RUN_ENDED = "run.ended"
    ALLOCATED = "allocated"
    RETURNED = "returned"
    BREAKER_TRIPPED = "breaker.tripped"
    BREAKER_RESUMED = "breaker.resumed"


class Facts(TypedDict, total=False):
    """What can be learned about a node on the way."""

    system_id: str | None
    address: str | None
    boot_id: str | None
    image: str | None
    deployed_at: datetime | None
    last_power_loss_at: datetime | None


@dataclass(frozen=True, slots=True)
class NodeState:
    """How far a node has come, what stopped it, and where it stands."""

    name: str
    stage: Stage = Stage.RACKED
    stage_at: datetime | None = None
    in_stage: Stage | None = None  # what a run is at work on
    in_stage_at: datetime | None = None
    failed_stage: Stage | None = None
    failed_at: datetime | None = None
    reason_code: str | None = None
    reason: str | None = None
    next: str | None = None
    evidence: str | None = None
    pool: Pool | None = None
    pool_by: str | None = None
    pool_why: str | None = None
    pool_since: datetime | None = None
    system_id: str | None = None
    address: str | None = None
    boot_id: str | None = None
    image: str | None = None
    deployed_at: datetime | None = None
    last_power_loss_at: datetime | None = None
    doubted_at: datetime | None = None  # since when a new yes is needed, whatever the reason
    doubt: str | None = None
    last_verdict: Answer | None = None
    last_verdict_at: datetime | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. Never changed, never deleted."""

    id: int
    ts: datetime
    kind: str
    actor: str
    host: str
    message: str
    node: str | None = None
    run: str | None = None
    stage: Stage | None = None
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation of an acting command."""

    id: str
    kind: str
    selector: str  # the nodes it began with, folded
    started_at: datetime
    ended_at: datetime | None
    state: RunState
    who: str
    reason: str | None
    options: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RunNode:
    """How one node fares in one run."""

    node: str
    in_stage: Stage | None = None
    reached: Stage | None = None
    failed: Stage | None = None
    code: str | None = None
    reason: str | None = None
    next: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """One answer of the gate about one node."""

    id: int
    node: str
    ts: datetime
    run: str | None
    level: str
    answer: Answer
    reasons: tuple[str, ...]
    evidence: str | None


@dataclass(frozen=True, slots=True)
class Allocation:
    """One node that is handed out: under which name, to whom, why, since when."""

    node: str
    name: str
    place: int  # its line in the hostfile, from 0
    who: str
    why: str | None
    since: datetime
    instead_of: str | None = None  # the node whose place it took


@dataclass(frozen=True, slots=True)
class Replacement:
    """A failed node, and the spare that takes its place; without one it only leaves."""

    failed: str
    spare: str | None
    serial: str | None = None  # of the failed node's hardware


@dataclass(frozen=True, slots=True)
class Breaker:
    """Whether automatic quarantine of reliable nodes is stopped. `left`: who left within the window."""

    tripped_at: datetime | None = None  # None: it is not stopped
    why: str = ""
    left: tuple[str, ...] = ()
