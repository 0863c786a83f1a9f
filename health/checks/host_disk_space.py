"""Have the file systems room and inodes left?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.disk import read_df
from health.rules.storage import judge_space
from inventory.model import Profile

ID = "host.disk_space"
SPACE = Collect("disk.space", argv=("df", "-PTkl"))
INODES = Collect("disk.inodes", argv=("df", "-PTil"))


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare each local file system with `disk.used_max_percent`; those of `disk.mounts` must be there."""
    most = limits.number(profile, "disk.used_max_percent")
    mounts = limits.optional_words(profile, "disk.mounts") or ("/",)
    space = read_df(whole(evidence, SPACE.id).text)
    inodes = read_df(whole(evidence, INODES.id).text)
    findings = [*judge_space(space, "space", most), *judge_space(inodes, "inodes", most)]
    for mount in mounts:
        for name, rows in (("df", space), ("df -i", inodes)):
            if not any(row.mount == mount and row.used_percent is not None for row in rows):
                # File systems without a fixed number of inodes show none, and cannot run out of them.
                no_inodes = any(row.mount == mount for row in rows) and rows is inodes
                if not no_inodes:
                    findings.append(Finding("disk", mount, f"{name} shows no {mount}", Action.INVESTIGATE))
    used = [row.used_percent for row in space if row.mount in mounts and row.used_percent is not None]
    metrics = {"disk.used_percent": float(max(used))} if used else {}
    return conclude(ID, findings, f"{len(space)} file systems under {most:.0f} % full", metrics)


CHECK = Check(id=ID, level=Level.QUICK, collects=(SPACE, INODES), judge=judge)
