"""Is swap on or off, as the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "host.swap"
SWAPS = Collect("host.swaps", file="/proc/swaps")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.swap`: on or off."""
    wanted = limits.text(profile, "host.swap")
    lines = whole(evidence, SWAPS.id).text.splitlines()
    if not lines or lines[0].split() != ["Filename", "Type", "Size", "Used", "Priority"]:
        raise Unreadable("/proc/swaps", "it has no heading")
    found = "on" if len(lines) > 1 else "off"
    findings = expect.one_of("host", "swap", found, (wanted,), "swap", Action.REIMAGE)
    return conclude(ID, findings, f"swap {found}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(SWAPS,), judge=judge)
