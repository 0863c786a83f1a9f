"""Does the kernel that the profile names run?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import word
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "kernel.version"
RELEASE = Collect("kernel.release", file="/proc/sys/kernel/osrelease")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the patterns `kernel.versions`."""
    wanted = limits.words(profile, "kernel.versions")
    found = word(evidence, RELEASE.id)
    findings = expect.one_of("kernel", "kernel", found, wanted, "kernel", Action.REIMAGE)
    return conclude(ID, findings, found)


CHECK = Check(id=ID, level=Level.QUICK, collects=(RELEASE,), judge=judge)
