"""Does the driver see as many GPUs as the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "gpu.count"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the driver's count with the limit `gpu.count`."""
    wanted = int(limits.number(profile, "gpu.count"))
    report = smi_report(evidence)
    if report.attached == wanted:
        return conclude(ID, (), f"{wanted} GPUs")
    seen = ", ".join(gpu.address for gpu in report.gpus) or "none"
    if report.attached < wanted:
        message = f"{report.attached} of {wanted} GPUs; seen: {seen}"
        action = Action.POWER_CYCLE
    else:
        message = f"{report.attached} GPUs where the profile says {wanted}; seen: {seen}"
        action = Action.INVESTIGATE
    return conclude(ID, (Finding("gpu", "GPUs of this node", message, action),), "")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
