"""One node before the gate, wherever it is asked from: the question, and what is kept of the answer."""

from __future__ import annotations

from pathlib import Path

from health.boots import Card
from health.check import Level
from health.evidence import Context, Evidence
from inventory.model import Node, Profile
from provision.access import Access
from provision.gate import GateResult, Question
from provision.gate_memory import GateMemory
from provision.ranking import SHADOW


def question(access: Access, node: Node, memory: GateMemory, profile: Profile | None = None) -> Question:
    """Return how to ask the gate about a node. Raises BadRequest where it has no address yet."""
    judged_by = profile or access.profile(node)

    def knowing(found: Evidence, collected_at: float) -> Context:
        return memory.context(node, judged_by, found, collected_at)

    return Question(access.ssh(node), judged_by, knowing, become=access.site.ssh.become)


def record(
    memory: GateMemory, node: Node, level: Level, result: GateResult, path: Path, *, run: str | None = None
) -> tuple[Card, ...]:
    """Keep the evidence in `path`, the answer in the store, and what it teaches; returns new triage cards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(result.raw)
    memory.access.store.record_verdict(
        node.name,
        run=run,
        level=str(level),
        answer=str(result.verdict.answer),
        reasons=[f"{one}{'' if one.gates else SHADOW}" for one in result.verdict.reasons],
        evidence=str(path),
        collected_at=result.collected_at,
    )
    if result.found is None:
        return ()
    return memory.remember(node, memory.access.profile(node), result.found, result.verdict)
