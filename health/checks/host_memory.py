"""Does the kernel have the memory that the profile says? A DIMM that was mapped out is missing here."""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import MEMINFO, memory
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.json_text import only
from inventory.model import Profile

ID = "host.memory"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare MemTotal with `host.memory_min_kb`."""
    wanted = limits.number(profile, "host.memory_min_kb")
    text = memory(evidence)
    total = int(only("/proc/meminfo", r"^MemTotal:\s+(\d+) kB$", text)[1])
    if total >= wanted:
        return conclude(ID, (), f"{total} kB")
    message = f"{total} kB of memory; the profile wants at least {wanted:.0f}"
    return conclude(ID, (Finding("memory", "DIMMs of this node", message, Action.RESEAT),), "")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MEMINFO,), judge=judge)
