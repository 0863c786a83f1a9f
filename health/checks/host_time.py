"""Is the node's clock the controller's? One that is years back breaks every certificate."""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude, unknown
from inventory.model import Profile

ID = "host.time"
# How far the node's clock may run from its own uptime within one collection.
_STEP_S = 2.0


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the controller's clock, within `host.clock_skew_s` seconds."""
    most = limits.number(profile, "host.clock_skew_s")
    collected_at = evidence.context.collected_at
    if collected_at is None:
        return unknown(ID, "host", "the controller's time of the collection is not known")
    began, ended = evidence.began, evidence.ended
    skew = began.wall_clock - collected_at
    if abs(skew) > most:
        message = f"the clock is {_span(skew)} the controller's"
        return conclude(ID, (Finding("host", "clock", message, Action.RESTART_SERVICE),), "")
    step = (ended.wall_clock - began.wall_clock) - (ended.uptime_s - began.uptime_s)
    if abs(step) > _STEP_S:
        message = f"the clock jumped by {step:.1f} s while evidence was gathered"
        return conclude(ID, (Finding("host", "clock", message, Action.RERUN),), "")
    return conclude(ID, (), f"within {abs(skew):.1f} s of the controller")


def _span(seconds: float) -> str:
    side = "behind" if seconds < 0 else "ahead of"
    size = abs(seconds)
    for unit, length in (("days", 86400.0), ("hours", 3600.0)):
        if size >= 2 * length:
            return f"{size / length:.0f} {unit} {side}"
    return f"{size:.0f} s {side}"


CHECK = Check(id=ID, level=Level.QUICK, collects=(), judge=judge)
