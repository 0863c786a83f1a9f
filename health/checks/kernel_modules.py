"""Are the kernel modules of the profile loaded, and none that it forbids?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import MODULES, modules
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "kernel.modules"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the lists `kernel.modules` and `kernel.modules_forbidden` (nouveau where not stated)."""
    needed = limits.words(profile, "kernel.modules")
    forbidden = limits.optional_words(profile, "kernel.modules_forbidden") or ("nouveau",)
    loaded = modules(evidence)
    findings = [
        Finding("kernel", one, f"module {one} is not loaded", Action.RESTART_SERVICE)
        for one in needed
        if one not in loaded
    ]
    findings += [
        Finding("kernel", one, f"module {one} is loaded", Action.REIMAGE)
        for one in forbidden
        if one in loaded
    ]
    return conclude(ID, findings, f"{len(loaded)} modules")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MODULES,), judge=judge)
