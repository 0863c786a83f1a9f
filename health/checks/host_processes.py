"""Do processes hang in the kernel or stay as zombies?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "host.processes"
_NEW_S = 60
_ROW = re.compile(r"\s*\d+ +\d+ [RSDTtXZIKWP]\S* +\d+ \S")
PROCESSES = Collect("host.processes", argv=("ps", "-eo", "pid,ppid,stat,etimes,comm"), limit_bytes=2_097_152)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.stuck_max` in state D (20) and `host.zombies_max` (20), where not stated."""
    stuck_most = limits.optional_number(profile, "host.stuck_max", 20)
    zombies_most = limits.optional_number(profile, "host.zombies_max", 20)
    lines = whole(evidence, PROCESSES.id).text.splitlines()
    rows = [line.split(None, 4) for line in lines[1:]]
    if (
        not lines
        or lines[0].split()[:3] != ["PID", "PPID", "STAT"]
        or any(not _ROW.match(line) for line in lines[1:])
    ):
        raise Unreadable("ps", "it is no list of processes")
    # ps lists itself, late: a list without it was cut, one with it twice was put together.
    if [row[4] for row in rows].count("ps") != 1 or len({row[0] for row in rows}) != len(rows):
        raise Unreadable("ps", "the list is not whole")
    # A process that waits for a disk is in state D for a moment; one that has been there all its life hangs.
    stuck = [row for row in rows if row[2].startswith("D")]
    # What the collection itself has just run is not buried yet when ps looks.
    zombies = [row for row in rows if row[2].startswith("Z") and int(row[3]) >= _NEW_S]
    findings = []
    for found, most, what in (
        (stuck, stuck_most, "hang in the kernel"),
        (zombies, zombies_most, "are zombies"),
    ):
        if len(found) > most:
            names = sorted({row[4].split()[0] for row in found})[:5]
            message = f"{len(found)} processes {what}: {', '.join(names)}"
            findings.append(Finding("host", names[0], message, Action.REBOOT))
    return conclude(ID, findings, f"{len(rows)} processes, {len(stuck)} waiting, {len(zombies)} zombies")


CHECK = Check(id=ID, level=Level.QUICK, collects=(PROCESSES,), judge=judge)
