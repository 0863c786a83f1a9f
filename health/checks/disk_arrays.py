"""Are the software RAID arrays whole?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.storage import read_mdstat
from health.rules import expect
from health.rules.storage import judge_arrays
from inventory.model import Profile

ID = "disk.arrays"
MDSTAT = Collect("disk.mdstat", file="/proc/mdstat")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge /proc/mdstat; there must be `disk.arrays` of them."""
    wanted = int(limits.number(profile, "disk.arrays"))
    found = read_mdstat(whole(evidence, MDSTAT.id).text)
    findings = judge_arrays(found)
    findings += expect.count("disk", len(found), wanted, "RAID arrays", Action.REIMAGE)
    return conclude(ID, findings, f"{len(found)} arrays whole")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MDSTAT,), judge=judge)
