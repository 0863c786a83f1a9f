"""Do all drives say that they are well?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.drive import read_smartctl
from health.rules import expect
from health.rules.drive import WEAR_WARN, judge_drive
from inventory.model import Profile

ID = "disk.drives"
SMART = Collect(
    "disk.smart",
    argv=("smartctl", "--json=c", "--all", "/dev/{name}"),
    each="/sys/class/nvme/nvme*",
    needs_root=True,
    timeout_s=25,
    limit_bytes=1_048_576,
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge SMART of every NVMe drive; there must be `disk.drives` of them."""
    wanted = int(limits.number(profile, "disk.drives"))
    wear = limits.optional_number(profile, "disk.wear_warn_percent", WEAR_WARN)
    found = files(evidence, SMART.id)
    drives = [read_smartctl(text) for text in found.values()]
    findings = [finding for one in drives for finding in judge_drive(one, wear_warn=wear)]
    findings += [
        Finding(
            "disk", one.identity, f"{one.name} tells nothing of its health", Action.RESEAT, Status.UNKNOWN
        )
        for one in drives
        if one.passed is None or not one.nvme
    ]
    findings += expect.count("disk", len(drives), wanted, "NVMe drives", Action.RESEAT)
    return conclude(ID, findings, f"{len(drives)} drives well")


CHECK = Check(id=ID, level=Level.QUICK, collects=(SMART,), judge=judge)
