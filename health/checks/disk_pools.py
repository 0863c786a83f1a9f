"""Are the ZFS pools online and without errors?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude, skipped
from health.readers.storage import read_zpool
from health.rules import expect
from health.rules.storage import judge_pools
from inventory.model import Profile

ID = "disk.pools"
POOLS = Collect("disk.pools", argv=("zpool", "status", "-p"))


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge `zpool status`; there must be `disk.pools` of them."""
    wanted = int(limits.number(profile, "disk.pools"))
    item = evidence.item(POOLS.id)
    if wanted == 0 and item is not None and item.missing:
        return skipped(ID, "the profile has no ZFS pool, and the node no ZFS")
    found = read_zpool(whole(evidence, POOLS.id).text)
    findings = judge_pools(found)
    findings += expect.count("disk", len(found), wanted, "ZFS pools", Action.REIMAGE)
    return conclude(ID, findings, f"{len(found)} pools online")


CHECK = Check(id=ID, level=Level.QUICK, collects=(POOLS,), judge=judge)
