"""The gate's hands: carry the collector to nodes, bring their evidence back, let health judge it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from health import catalogue, evidence, verdict
from health.check import Level
from health.errors import EvidenceBroken
from health.evidence import Context, Evidence
from health.plan import CollectPlan
from health.verdict import Answer, Verdict
from inventory.model import Profile
from provision import ssh
from provision.errors import SshFailed

# A node under load may take this long to let us in, beyond what the collection takes.
_SSH_S = 10.0
_MOST = 256 << 20  # bytes of evidence; the collector itself stays far below
# Each is one ssh process here, which mostly waits. Those that hang must not keep the others waiting: of
# five hundred nodes the last to hang must begin soon enough to be done within a minute.
AT_ONCE = 512
TRIES = 2  # unknown is asked again once; then a human looks

# What to judge evidence with, beside the evidence. The time is the controller's, when it was asked for.
Knowing = Callable[[Evidence, float], Context]


@dataclass(frozen=True, slots=True)
class GateResult:
    """A verdict and the raw evidence behind it; `found` is None where none came back whole."""

    verdict: Verdict
    raw: bytes
    found: Evidence | None
    lost: str  # why no evidence came back; empty when it did
    collected_at: datetime

    @property
    def boot_id(self) -> str | None:
        """The boot that was judged, or None where there is no evidence."""
        return self.found.ended.boot_id if self.found else None


@dataclass(frozen=True, slots=True)
class Question:
    """One node to be judged: how it is reached, by which profile, with what beside its evidence."""

    target: ssh.SshTarget
    profile: Profile
    knowing: Knowing | None = None
    become: bool = True


async def judge_node(question: Question, level: Level) -> GateResult:
    """Collect evidence on the node and judge it. Never raises for a node's fault: that is `unknown`."""
    profile = question.profile
    nonce = secrets.token_hex(16)
    plan = catalogue.plan(profile, level)
    sent = datetime.now(UTC)
    try:
        raw = await collect(question.target, plan, nonce, become=question.become)
        found = evidence.parse(raw.out, nonce=nonce) if not raw.lost else None
    except EvidenceBroken as error:
        raw, found = Collected(raw.out, f"no evidence: {error}"), None
    if found is None:
        judged = verdict.verdict(None, profile, level, problem=raw.lost)
        return GateResult(judged, raw.out, None, raw.lost, sent)
    context = question.knowing(found, sent.timestamp()) if question.knowing else Context()
    # With what it was judged by: whoever keeps it learns from the same.
    found = replace(found, context=replace(context, collected_at=sent.timestamp()))
    judged = verdict.verdict(found, profile, level, context=found.context)
    return GateResult(judged, raw.out, found, "", sent)


@dataclass(frozen=True, slots=True)
class Collected:
    """What the collector printed; `lost` says why that is no evidence, and is empty where it may be."""

    out: bytes
    lost: str


async def collect(target: ssh.SshTarget, plan: CollectPlan, nonce: str, *, become: bool = True) -> Collected:
    """Run a plan's collector on a node. Nothing is installed there: it comes through a pipe."""
    command = ["python3", "-"]
    if become:
        command = ["sudo", "-n", *command]
    timeout_s = plan.deadline_s + _SSH_S
    try:
        result = await ssh.run(target, command, stdin=plan.script(nonce), timeout_s=timeout_s, limit=_MOST)
    except SshFailed as error:
        return Collected(b"", f"no evidence: {error.reason}")
    if result.status != 0:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        last = said[-1] if said else "no message"
        return Collected(result.stdout, f"no evidence: the collector ended with {result.status}: {last}")
    return Collected(result.stdout, "")


async def judge_all(
    questions: Sequence[Question],
    level: Level,
    take: Callable[[str, GateResult], None],
    *,
    at_once: int = AT_ONCE,
    tries: int = 1,
) -> None:
    """Judge many nodes side by side and hand each result over as it comes: none is kept here.

    Where the answer is unknown the node is asked again at once, up to `tries` times in all; not one that
    took more than half of its time: it hangs, and would hang again.
    """
    room = asyncio.Semaphore(at_once)
    clock = asyncio.get_running_loop().time

    async def one(question: Question) -> None:
        patience = (catalogue.plan(question.profile, level).deadline_s + _SSH_S) / 2
        async with room:
            for _ in range(tries):
                began = clock()
                result = await judge_node(question, level)
                take(question.target.node, result)
                if result.verdict.answer is not Answer.UNKNOWN or clock() - began > patience:
                    break

    await asyncio.gather(*(one(question) for question in questions))
