"""Does the BMC's event log hold anything that still stands?"""

from __future__ import annotations

from datetime import UTC, datetime

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.readers.ipmi import read_sel
from health.rules.bmc import judge_events
from inventory.model import Profile

ID = "bmc.events"
LOG = Collect("bmc.sel", argv=("ipmitool", "sel", "elist"), needs_root=True, timeout_s=25)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge the log as the node itself reads it; `bmc.events_days` leaves older events out."""
    days = limits.optional_number(profile, "bmc.events_days", 0)
    found = read_sel(whole(evidence, LOG.id).text)
    recent = tuple(one for one in found if not days or _younger(one.date, evidence.ended.wall_clock, days))
    return conclude(ID, judge_events(recent), f"{len(recent)} events, none standing")


def _younger(date: str, now: float, days: float) -> bool:
    """Say whether an event is of the last days; one without a date may be."""
    try:
        then = datetime.strptime(date, "%m/%d/%Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return True
    return now - then < days * 86400


CHECK = Check(id=ID, level=Level.QUICK, collects=(LOG,), judge=judge)
