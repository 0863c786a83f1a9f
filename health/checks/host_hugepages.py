"""Are as many huge pages set aside as the profile says?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Level
from health.checks.sources import MEMINFO, whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "host.hugepages"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.hugepages`, of the default size."""
    wanted = int(limits.number(profile, "host.hugepages"))
    found = re.search(r"^HugePages_Total:\s+(\d+)$", whole(evidence, MEMINFO.id).text, re.MULTILINE)
    if not found:
        raise Unreadable("/proc/meminfo", "it has no HugePages_Total")
    findings = expect.count("memory", int(found[1]), wanted, "huge pages", Action.REBOOT)
    return conclude(ID, findings, f"{wanted} huge pages")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MEMINFO,), judge=judge)
