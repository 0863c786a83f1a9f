"""Has every GPU joined the NVSwitch fabric?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Outcome, conclude, skipped
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.fabric"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail unless each GPU's fabric state is Completed with Success; skipped where `nvswitch.count` is 0."""
    if limits.number(profile, "nvswitch.count") == 0:
        return skipped(ID, "the profile has no NVSwitch")
    found = gpus(evidence, profile)
    findings = [finding for one in found for finding in gpu.fabric(one, wanted=True)]
    return conclude(ID, findings, f"{len(found)} GPUs have joined")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
