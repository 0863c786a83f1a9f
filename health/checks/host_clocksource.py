"""Does the kernel keep time by the fast clock?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import word
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "host.clocksource"
SOURCE = Collect("cpu.clocksource", file="/sys/devices/system/clocksource/clocksource0/current_clocksource")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.clocksource` (tsc); any other is slow."""
    wanted = limits.optional_words(profile, "host.clocksource") or ("tsc",)
    found = word(evidence, SOURCE.id)
    findings = expect.one_of("cpu", "clocksource", found, wanted, "clocksource", Action.REBOOT)
    return conclude(ID, findings, found)


CHECK = Check(id=ID, level=Level.QUICK, collects=(SOURCE,), judge=judge)
