"""Has an NVSwitch logged an SXid, since boot or the last repair?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.kernel_source import JOURNAL, KMSG, kernel_log
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules.xid import events, judge_events
from inventory.model import Profile

ID = "nvswitch.sxid"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge by the severity that the line states, else by the catalogue."""
    most = int(limits.optional_number(profile, "gpu.xid.count_max", 5))
    log = kernel_log(evidence)
    found = [one for one in events(log.lines) if one.kind == "sxid"]
    findings = judge_events(found, count_max=most)
    return conclude(ID, [*findings, *log.unproven()], f"{len(found)} SXid lines, none of consequence")


CHECK = Check(id=ID, level=Level.QUICK, collects=(KMSG, JOURNAL), judge=judge)
