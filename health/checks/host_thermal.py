"""Have CPUs been slowed down by heat since boot?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from inventory.model import Profile

ID = "host.thermal"
COUNTS = Collect("cpu.throttles", file="/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Warn on any throttling; fail past `host.throttle_max` events on one package (1000 where not stated)."""
    most = limits.optional_number(profile, "host.throttle_max", 1000)
    found = files(evidence, COUNTS.id)
    worst: dict[str, int] = {}
    for path, text in found.items():
        if not text.strip().isdecimal():
            raise Unreadable(path, f"it says {text.strip()[:20]!r}")
        worst[path.split("/")[5]] = int(text)
    cpu = max(worst, key=lambda name: worst[name])
    count = worst[cpu]
    findings = []
    if count:
        status = Status.FAIL if count > most else Status.WARN
        message = f"its package was slowed down by heat {count} times since boot"
        findings.append(Finding("cpu", cpu, message, Action.INVESTIGATE, status))
    return conclude(ID, findings, f"{len(worst)} CPUs never slowed down by heat")


CHECK = Check(id=ID, level=Level.QUICK, collects=(COUNTS,), judge=judge)
