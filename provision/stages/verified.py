"""verified: the gate said yes, to evidence collected on this boot, after the last deployment."""

from __future__ import annotations

from health.check import Level
from health.verdict import Answer
from provision import gate, judging
from provision.errors import NodeFailed
from provision.gate import GateResult
from provision.stages.job import NodeJob, Reached
from provision.stages.site_memory import SiteMemory

_TRIES = 2  # unknown is asked again once; then a human looks


async def reach(job: NodeJob, memory: SiteMemory, level: Level = Level.QUICK) -> Reached:
    """Judge the node and record the verdict. Raises NodeFailed on no and on unknown."""
    result = await judge_and_record(job, memory, level, 1)
    for attempt in range(2, _TRIES + 1):
        if result.verdict.answer is not Answer.UNKNOWN:
            break
        job.note(f"the gate answers unknown, asking again: {headline(result)}")
        result = await judge_and_record(job, memory, level, attempt)
    if result.verdict.answer is Answer.YES:
        return Reached(result.verdict.summary, facts={"boot_id": result.boot_id})
    raise _failure(job, result)


async def judge_and_record(job: NodeJob, site: SiteMemory, level: Level, attempt: int) -> GateResult:
    """Ask the gate once; keep the evidence and the verdict."""
    memory = site.now(job.access)
    result = await gate.judge_node(judging.question(job.access, job.node, memory, job.profile), level)
    folder = job.access.settings.run_folder(job.run, job.node.name)
    path = folder / f"evidence-{job.options.attempt}-{attempt}.json"
    for card in judging.record(memory, job.node, level, result, path, run=job.run):
        job.note(f"new triage card {card.id}: {card.oddity}: {card.line[:100]}")
    return result


def headline(result: GateResult) -> str:
    """Return the first reason in one line."""
    reasons = result.verdict.reasons
    return str(reasons[0]) if reasons else result.verdict.summary


def _failure(job: NodeJob, result: GateResult) -> NodeFailed:
    folder = str(job.access.settings.run_folder(job.run, job.node.name))
    more = len(result.verdict.reasons) - 1
    why = f"and {more} more" if more > 0 else ""
    if result.verdict.answer is Answer.NO:
        return NodeFailed("verified", "gate-no", headline(result), why=why, evidence=folder)
    code = "gate-lost" if result.lost else "gate-unknown"
    return NodeFailed("verified", code, headline(result), why=why, evidence=folder)
