"""The gate's hands: carry the collector to a node, bring its evidence back, let health judge it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from health import catalogue, evidence, verdict
from health.check import Level
from health.errors import EvidenceBroken
from health.verdict import Verdict
from inventory.model import Profile
from provision import ssh
from provision.errors import SshFailed

_SSH_S = 30.0  # a node under load may take this long to let us in
_MOST = 256 << 20  # bytes of evidence; the collector itself stays far below


@dataclass(frozen=True, slots=True)
class GateResult:
    """A verdict and the raw evidence behind it; `boot_id` is None where there is no evidence."""

    verdict: Verdict
    raw: bytes
    boot_id: str | None
    lost: str  # why no evidence came back; empty when it did
    collected_at: datetime


async def judge_node(
    target: ssh.SshTarget, profile: Profile, level: Level, *, become: bool = True
) -> GateResult:
    """Collect evidence on the node and judge it. Never raises for a node's fault: that is `unknown`."""
    nonce = secrets.token_hex(16)
    plan = catalogue.plan(profile, level)
    command = ["python3", "-"]
    if become:
        command = ["sudo", "-n", *command]
    sent = datetime.now(UTC)
    try:
        result = await ssh.run(
            target, command, stdin=plan.script(nonce), timeout_s=plan.deadline_s + _SSH_S, limit=_MOST
        )
    except SshFailed as error:
        return _nothing(profile, level, f"no evidence: {error.reason}", b"", sent)
    if result.status != 0:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = (
            f"no evidence: the collector ended with {result.status}: {said[-1] if said else 'no message'}"
        )
        return _nothing(profile, level, reason, result.stdout, sent)
    try:
        found = evidence.parse(result.stdout, nonce=nonce)
    except EvidenceBroken as error:
        return _nothing(profile, level, f"no evidence: {error}", result.stdout, sent)
    judged = verdict.verdict(found, profile, level, collected_at=sent.timestamp())
    return GateResult(judged, result.stdout, found.ended.boot_id, "", sent)


def _nothing(profile: Profile, level: Level, problem: str, raw: bytes, sent: datetime) -> GateResult:
    judged = verdict.verdict(None, profile, level, problem=problem)
    return GateResult(judged, raw, None, problem, sent)
