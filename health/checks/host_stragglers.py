"""Is any CPU slower than the others?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.host_cpus import ONLINE, cpu_set
from health.checks.sources import whole, word
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.speed import read_stragglers
from inventory.model import Profile

ID = "host.stragglers"
TIMES = Collect("cpu.times", argv=("python3", "-c", "@stragglers.py"), timeout_s=120, alone=True)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare each CPU's time with the median of all: `host.straggler_percent` longer is too long (15)."""
    most = limits.optional_number(profile, "host.straggler_percent", 15)
    seconds = read_stragglers(whole(evidence, TIMES.id).text)
    if set(seconds) != cpu_set(word(evidence, ONLINE.id)):
        raise Unreadable("stragglers.py", f"it timed {len(seconds)} CPUs, which are not those online")
    median = sorted(seconds.values())[len(seconds) // 2]
    findings = [
        Finding(
            "cpu", f"CPU {cpu}", f"CPU {cpu} takes {100 * (time / median - 1):.0f} % longer", Action.REBOOT
        )
        for cpu, time in sorted(seconds.items())
        if time > median * (1 + most / 100)
    ]
    slowest = 100 * (max(seconds.values()) / median - 1)
    return conclude(ID, findings, f"the slowest of {len(seconds)} CPUs takes {slowest:.0f} % longer")


CHECK = Check(id=ID, level=Level.FULL, collects=(TIMES, ONLINE), judge=judge)
