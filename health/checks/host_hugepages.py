"""Are as many huge pages set aside as the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import MEMINFO, memory
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.json_text import only
from health.rules import expect
from inventory.model import Profile

ID = "host.hugepages"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.hugepages`, of the default size."""
    wanted = int(limits.number(profile, "host.hugepages"))
    text = memory(evidence)
    found = int(only("/proc/meminfo", r"^HugePages_Total:\s+(\d+)$", text)[1])
    findings = expect.count("memory", found, wanted, "huge pages", Action.REBOOT)
    return conclude(ID, findings, f"{wanted} huge pages")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MEMINFO,), judge=judge)
