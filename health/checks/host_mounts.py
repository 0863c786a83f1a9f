"""Are the file systems of the profile mounted, and none of them read-only?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "host.mounts"
MOUNTS = Collect("disk.mounts", file="/proc/mounts")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `disk.mounts` (/ where not stated)."""
    wanted = limits.optional_words(profile, "disk.mounts") or ("/",)
    rows = [line.split() for line in whole(evidence, MOUNTS.id).text.splitlines()]
    if not rows or any(len(row) != 6 for row in rows):
        raise Unreadable("/proc/mounts", "a line is no mount")
    if rows.count(rows[0]) > 1:
        raise Unreadable("/proc/mounts", "it comes twice")
    options = {row[1]: (row[0], row[3].split(",")) for row in rows}
    findings = []
    for mount in wanted:
        if mount not in options:
            findings.append(Finding("disk", mount, f"{mount} is not mounted", Action.REIMAGE))
        elif not {"ro", "rw"} & set(options[mount][1]):
            raise Unreadable("/proc/mounts", f"it does not say whether {mount} is mounted to write")
        elif "ro" in options[mount][1]:
            message = f"{mount} is mounted read-only: the kernel does that after an error"
            findings.append(Finding("disk", f"{options[mount][0]} on {mount}", message, Action.REIMAGE))
    return conclude(ID, findings, f"{', '.join(wanted)} mounted to write")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MOUNTS,), judge=judge)
