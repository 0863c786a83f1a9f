"""Is every GPU allowed its full power?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "gpu.power"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the enforced power limit with `gpu.power_limit_w`."""
    wanted = limits.number(profile, "gpu.power_limit_w")
    found = gpus(evidence, profile)
    findings = []
    for one in found:
        path = "gpu_power_readings/current_power_limit"
        findings += expect.gpu_number(one, path, wanted, "power limit in W", Action.RESTART_SERVICE)
    return conclude(ID, findings, f"{wanted:g} W on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
