"""Can adapters read GPU memory without the CPU: by nvidia-peermem, or by dma-buf?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import MODULES, modules
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude, skipped
from inventory.model import Profile

ID = "gdr.path"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare loaded modules with `gdr.path`: peermem, dmabuf or none."""
    wanted = limits.text(profile, "gdr.path")
    if wanted == "none":
        return skipped(ID, "the profile has no GPU direct path")
    loaded = modules(evidence)
    needs = {"peermem": ("nvidia_peermem", "ib_core"), "dmabuf": ("nvidia", "ib_core")}.get(wanted)
    if needs is None:
        raise limits.LimitMissing(profile.name, "gdr.path", "known path")
    findings = [
        Finding("driver", name, f"module {name} is not loaded", Action.RESTART_SERVICE)
        for name in needs
        if name not in loaded
    ]
    return conclude(ID, findings, f"{wanted} path is there")


CHECK = Check(id=ID, level=Level.QUICK, collects=(MODULES,), judge=judge)
