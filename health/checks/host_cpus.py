"""Are all CPUs of the profile there, and all that are there online?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import word
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "host.cpus"
_LIST = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*")
ONLINE = Collect("cpu.online", file="/sys/devices/system/cpu/online")
PRESENT = Collect("cpu.present", file="/sys/devices/system/cpu/present")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.cpus`, or with `host.cpus_min` where the exact count is left open."""
    exact = profile.limit("host.cpus") is not None
    wanted = int(limits.number(profile, "host.cpus" if exact else "host.cpus_min"))
    online = cpu_set(word(evidence, ONLINE.id))
    present = cpu_set(word(evidence, PRESENT.id))
    if online - present:
        raise Unreadable("CPU lists", "a CPU is online that is not present")
    findings = []
    if off := sorted(present - online):
        shown = ",".join(map(str, off[:8]))
        findings.append(Finding("cpu", f"CPU {shown}", f"{len(off)} CPUs are offline", Action.REBOOT))
    if len(present) < wanted or (exact and len(present) > wanted):
        message = f"{len(present)} CPUs; the profile says {wanted}"
        action = Action.RESEAT if len(present) < wanted else Action.INVESTIGATE
        findings.append(Finding("cpu", "CPUs of this node", message, action))
    return conclude(ID, findings, f"{len(online)} CPUs online")


def cpu_set(text: str) -> frozenset[int]:
    """Read the kernel's list form, "0-3,8". Raises Unreadable."""
    if not _LIST.fullmatch(text.strip()):
        raise Unreadable("CPU list", f"it says {text.strip()[:60]!r}")
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


CHECK = Check(id=ID, level=Level.QUICK, collects=(ONLINE, PRESENT), judge=judge)
