"""What a check answers: a status, and findings that name the part and the next action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """How one check ended. UNKNOWN neither admits nor condemns: the check could not look."""

    PASS = "pass"  # noqa: S105  no password
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


class Action(StrEnum):
    """What to do about a finding, mildest first."""

    NONE = "none"
    RERUN = "rerun"
    RESTART_SERVICE = "restart_service"
    GPU_RESET = "gpu_reset"
    REBOOT = "reboot"
    POWER_CYCLE = "power_cycle"
    REIMAGE = "reimage"
    RESEAT = "reseat"
    VENDOR_TICKET = "vendor_ticket"
    INVESTIGATE = "investigate"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or worth showing.

    `identity` is a serial, PCI address or port; an index alone would name another part tomorrow.
    """

    component: str
    identity: str
    message: str
    action: Action
    status: Status = Status.FAIL


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of one check."""

    check: str
    status: Status
    findings: tuple[Finding, ...]
    summary: str
    # What was measured, by a name that is the same on every node of a profile.
    metrics: Mapping[str, float] = field(default_factory=dict)


_WORST_FIRST = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS)


def conclude(
    check: str,
    findings: tuple[Finding, ...] | list[Finding],
    healthy: str,
    metrics: Mapping[str, float] | None = None,
) -> Outcome:
    """Make the outcome that the worst finding asks for; none means a pass that says `healthy`."""
    found = tuple(findings)
    statuses = {finding.status for finding in found}
    worst = next((status for status in _WORST_FIRST if status in statuses), Status.PASS)
    if worst is Status.PASS:
        return Outcome(check, worst, found, healthy, metrics or {})
    shown = [finding for finding in found if finding.status is worst]
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    return Outcome(check, worst, found, shown[0].message + more, metrics or {})


def unknown(check: str, component: str, why: str, action: Action = Action.RERUN) -> Outcome:
    """Make the outcome of a check that could not look, saying why."""
    finding = Finding(component, component, why, action, Status.UNKNOWN)
    return Outcome(check, Status.UNKNOWN, (finding,), why)


def skipped(check: str, why: str) -> Outcome:
    """Make the outcome of a check that the profile says does not apply."""
    return Outcome(check, Status.SKIPPED, (), why)
