"""Does the driver ask for a GPU to be reset, drained or rebooted?"""

from __future__ import annotations

from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.recovery"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on any action that the driver asks for."""
    found = gpus(evidence, profile)
    findings = [finding for one in found for finding in gpu.recovery(one, wanted=True)]
    return conclude(ID, findings, f"the driver asks for nothing on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
