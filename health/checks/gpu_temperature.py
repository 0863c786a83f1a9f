"""Are the GPUs far enough from the temperature at which they slow down?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.temperature"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the distance with `gpu.temperature_margin_c` degrees (5 where not stated)."""
    margin = limits.optional_number(profile, "gpu.temperature_margin_c", 5)
    found = gpus(evidence, profile)
    findings = [finding for one in found for finding in gpu.temperature(one, wanted=True, margin=margin)]
    left = [value for one in found if (value := gpu.temperature_left(one)) is not None]
    metrics = {"gpu.margin_c": min(left)} if left else {}
    said = f"{len(found)} GPUs at least {margin:.0f} degrees from slowing down"
    return conclude(ID, findings, said, metrics)


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
