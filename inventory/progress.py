"""How nodes come along: stages begun, reached and failed, and the gate's answers. The caller holds the
write transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Unpack

from sqlalchemy.engine import Connection

from inventory import moves, rows, schema
from inventory.journal import Journal
from inventory.model import Stage
from inventory.records import Answer, EventKind, Facts, RunNode


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node did not reach `stage`: `code` names a runbook, `next` is what a human does."""

    stage: Stage
    code: str
    reason: str
    next: str
    evidence: str | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer of the gate. `collected_at`: when the evidence was taken; now if not told."""

    level: str
    answer: Answer
    reasons: Sequence[str]
    evidence: str | None
    collected_at: datetime | None


def begin(journal: Journal, connection: Connection, node: str, stage: Stage, run: str | None) -> None:
    """Note that a run is at work to bring the node to `stage`."""
    now = journal.clock()
    state = replace(rows.load_state(connection, node), in_stage=stage, in_stage_at=now, run=run)
    rows.save_state(connection, state)
    rows.save_progress(connection, run, RunNode(node, in_stage=stage, at=now), keep_reached=True)
    journal.add(connection, EventKind.STAGE_BEGUN, f"{stage} begun", node=node, run=run, stage=stage)


def reach(
    journal: Journal,
    connection: Connection,
    node: str,
    stage: Stage,
    run: str | None,
    detail: str | None,
    **facts: Unpack[Facts],
) -> None:
    """Note that the node stands at `stage` now, and what was learned on the way."""
    now = journal.clock()
    state = replace(
        rows.load_state(connection, node),
        stage=stage,
        stage_at=now,
        in_stage=None,
        in_stage_at=None,
        failed_stage=None,
        failed_at=None,
        reason_code=None,
        reason=None,
        next=None,
        evidence=None,
        run=run,
        **facts,
    )
    message = f"{stage} reached" + (f": {detail}" if detail else "")
    journal.add(connection, EventKind.STAGE_REACHED, message, node=node, run=run, stage=stage, data=facts)
    rows.save_state(connection, state)
    moves.evict_if_stale(journal, connection, state, run)
    rows.save_progress(connection, run, RunNode(node, reached=stage, at=now))


def observe(
    journal: Journal, connection: Connection, node: str, run: str | None, **facts: Unpack[Facts]
) -> None:
    """Note facts about a node without moving it to another stage."""
    state = replace(rows.load_state(connection, node), **facts)
    known = ", ".join(sorted(facts))
    journal.add(connection, EventKind.OBSERVED, f"observed {known}", node=node, run=run, data=facts)
    rows.save_state(connection, state)
    moves.evict_if_stale(journal, connection, state, run)


def fail(journal: Journal, connection: Connection, node: str, run: str | None, failure: Failure) -> None:
    """Note that the node did not reach a stage; a new yes is needed before it is trusted again."""
    now, stage = journal.clock(), failure.stage
    state = replace(
        rows.load_state(connection, node),
        in_stage=None,
        in_stage_at=None,
        failed_stage=stage,
        failed_at=now,
        reason_code=failure.code,
        reason=failure.reason,
        next=failure.next,
        evidence=failure.evidence,
        doubted_at=now,
        doubt=f"it failed at {stage}",
        run=run,
    )
    rows.save_state(connection, state)
    told = RunNode(node, failed=stage, code=failure.code, reason=failure.reason, next=failure.next, at=now)
    rows.save_progress(connection, run, told, keep_reached=True)
    data = {"code": failure.code, "next": failure.next, "evidence": failure.evidence}
    message = f"{stage} failed: {failure.reason}"
    journal.add(connection, EventKind.STAGE_FAILED, message, node=node, run=run, stage=stage, data=data)


def judge(journal: Journal, connection: Connection, node: str, run: str | None, judgement: Judgement) -> None:
    """Keep an answer of the gate, and make it the node's last one unless a newer one is known."""
    now, answer = journal.clock(), judgement.answer
    # Evidence from the future would outlast every deployment to come.
    when = min(judgement.collected_at or now, now)
    state = rows.load_state(connection, node)
    if state.last_verdict_at is None or when >= state.last_verdict_at:
        state = replace(state, last_verdict=answer, last_verdict_at=when)
    rows.save_state(connection, state)
    told = {
        "level": judgement.level,
        "answer": answer,
        "evidence": judgement.evidence,
        "reasons": rows.plain(judgement.reasons),
    }
    connection.execute(schema.verdict.insert(), {"node": node, "ts": when, "run": run, **told})
    reasons = "; ".join(judgement.reasons)
    message = f"{judgement.level} gate: {answer}" + (f": {reasons}" if reasons else "")
    journal.add(connection, EventKind.VERDICT, message, node=node, run=run, data=told)
