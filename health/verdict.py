"""The front door: evidence of a node in, yes, no or unknown out, with reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from health.catalogue import CHECKS, plan, required_checks, shadowed
from health.check import Check, Level
from health.errors import HealthError
from health.evidence import Context, Evidence
from health.limits import LimitMissing
from health.outcome import Action, Outcome, Status, unknown
from health.profiles.hardware import other_hardware
from inventory.model import Profile

SCHEMA = 1


class Answer(StrEnum):
    """Whether a node may join the pool. UNKNOWN is not a soft no: nothing was proven either way."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reason:
    """One finding that bears on the answer, with the check that made it."""

    check: str
    status: Status
    component: str
    identity: str
    message: str
    action: Action
    gates: bool = True

    def __str__(self) -> str:
        return f"{self.check}: {self.message} ({self.identity}); next: {self.action}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer about one node at one moment."""

    answer: Answer
    profile: str
    level: Level
    outcomes: tuple[Outcome, ...]
    reasons: tuple[Reason, ...]  # what decided first, then warnings, then reports that do not gate
    evidence: str | None  # digest of the evidence judged
    boot_id: str | None

    @property
    def summary(self) -> str:
        """Say the answer in one line, worst reason first."""
        deciding = [reason for reason in self.reasons if reason.gates]
        if not deciding:
            return f"{self.answer}: {sum(o.status is Status.PASS for o in self.outcomes)} checks pass"
        more = f" (and {len(deciding) - 1} more)" if len(deciding) > 1 else ""
        return f"{self.answer}: {deciding[0].check}: {deciding[0].message}{more}"

    def to_json(self) -> dict[str, object]:
        """Return the form that is printed and stored; keys never change meaning."""
        return {
            "schema": SCHEMA,
            "answer": str(self.answer),
            "profile": self.profile,
            "level": str(self.level),
            "summary": self.summary,
            "reasons": [_plain(asdict(reason)) for reason in self.reasons],
            "outcomes": [
                {
                    "check": outcome.check,
                    "status": str(outcome.status),
                    "summary": outcome.summary,
                    "findings": [_plain(asdict(finding)) for finding in outcome.findings],
                    "metrics": dict(outcome.metrics),
                }
                for outcome in self.outcomes
            ],
            "evidence": self.evidence,
            "boot_id": self.boot_id,
        }


def verdict(
    evidence: Evidence | None,
    profile: Profile,
    level: Level,
    *,
    problem: str | None = None,
    collected_at: float | None = None,
    context: Context | None = None,
) -> Verdict:
    """Judge one node.

    `evidence` None, or a `problem` met while it was gathered, never gives yes. `collected_at` is the
    controller's clock in seconds since 1970 when the collection began.
    """
    if evidence is None:
        why = problem or "no evidence came back"
        return _verdict((unknown("gate.evidence", "node", why),), profile, level, None)
    known = context or Context()
    if collected_at is not None:
        known = replace(known, collected_at=collected_at)
    evidence = replace(evidence, context=known)
    try:
        if (other := other_hardware(evidence, profile)) is not None:
            # Its limits are another machine's: that it misses them says nothing against this one.
            foreign = unknown("gate.hardware", profile.name, other, Action.INVESTIGATE)
            return _verdict((foreign,), profile, level, evidence)
        outcomes = tuple(_admission(evidence, profile, level, problem))
    except LimitMissing as exc:
        # What the profile says of the gate itself cannot be read: it does not say that all is well.
        outcomes = (unknown("gate.profile", profile.name, str(exc), Action.INVESTIGATE),)
    outcomes += tuple(_judge(check, evidence, profile) for check in required_checks(profile, level))
    return _verdict(outcomes, profile, level, evidence)


def _admission(evidence: Evidence, profile: Profile, level: Level, problem: str | None) -> Iterable[Outcome]:
    """Give an outcome for what makes all checks together worth less than they seem."""
    if problem:
        yield unknown("gate.evidence", "node", problem)
    shadowed(profile)
    wanted = plan(profile, level)
    absent = [item.id for item in wanted.items if evidence.item(item.id) is None]
    if absent:
        shown = ", ".join(absent[:5])
        yield unknown("gate.evidence", "node", f"evidence lacks {len(absent)} items of this level: {shown}")
    foreign = [
        item.id
        for item in wanted.items
        if (found := evidence.item(item.id)) is not None and found.source != item.source
    ]
    if foreign:
        shown = ", ".join(foreign[:5])
        yield unknown("gate.evidence", "node", f"evidence was collected in another way: {shown}")
    known = {check.id for check in CHECKS}
    for name in profile.checks:
        if name not in known:
            why = f"profile {profile.name} requires {name}, which is no check"
            yield unknown("gate.profile", profile.name, why, Action.INVESTIGATE)
    if not required_checks(profile, level):
        yield unknown("gate.profile", profile.name, "no check is required: nothing would be proven",
                      Action.INVESTIGATE)  # fmt: skip


def _judge(check: Check, evidence: Evidence, profile: Profile) -> Outcome:
    component = check.id.partition(".")[0]
    try:
        outcome = check.judge(evidence, profile)
    except HealthError as exc:
        return unknown(check.id, component, str(exc), Action.INVESTIGATE)
    except Exception as exc:  # noqa: BLE001  a judge with a bug has judged nothing, and must not open the gate
        return unknown(check.id, component, f"the check itself failed: {exc!r}", Action.INVESTIGATE)
    if outcome.check != check.id:
        return unknown(check.id, component, f"it answered as {outcome.check}", Action.INVESTIGATE)
    return outcome


def _verdict(
    outcomes: tuple[Outcome, ...], profile: Profile, level: Level, evidence: Evidence | None
) -> Verdict:
    quiet = _quiet(profile)
    gating = [outcome for outcome in outcomes if outcome.check not in quiet]
    statuses = {outcome.status for outcome in gating}
    if Status.FAIL in statuses:
        answer = Answer.NO
    elif Status.UNKNOWN in statuses or not statuses & {Status.PASS, Status.WARN}:
        answer = Answer.UNKNOWN
    else:
        answer = Answer.YES
    return Verdict(
        answer=answer,
        profile=profile.name,
        level=level,
        outcomes=outcomes,
        reasons=_reasons(outcomes, quiet),
        evidence=evidence.digest if evidence else None,
        boot_id=evidence.began.boot_id if evidence else None,
    )


def _quiet(profile: Profile) -> frozenset[str]:
    """Return the checks in shadow. The gate's own conditions cannot be put there."""
    try:
        return shadowed(profile)
    except LimitMissing:
        return frozenset()


_RANK = {Status.FAIL: 0, Status.UNKNOWN: 1, Status.WARN: 2}


def _reasons(outcomes: tuple[Outcome, ...], quiet: frozenset[str]) -> tuple[Reason, ...]:
    reasons = [
        Reason(
            check=outcome.check,
            status=finding.status,
            component=finding.component,
            identity=finding.identity,
            message=finding.message,
            action=finding.action,
            gates=outcome.check not in quiet,
        )
        for outcome in outcomes
        for finding in outcome.findings
        if finding.status in _RANK
    ]
    return tuple(sorted(reasons, key=lambda reason: (not reason.gates, _RANK[reason.status])))


def _plain(document: dict[str, object]) -> dict[str, object]:
    return {key: str(value) if isinstance(value, StrEnum) else value for key, value in document.items()}
