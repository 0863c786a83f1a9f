"""Is ECC on, and has any GPU memory error gone uncorrected?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.ecc"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on ECC that is off, on any volatile uncorrected error, and on SRAM errors past the limit.

    `gpu.ecc.sram_uncorrected_max` is how many a part may have had in its life (4 where not stated).
    """
    most = limits.optional_number(profile, "gpu.ecc.sram_uncorrected_max", gpu.SRAM_EVER_MAX)
    report = smi_report(evidence)
    findings = [found for one in report.gpus for found in gpu.ecc(one, wanted=True, sram_max=most)]
    return conclude(ID, findings, f"ECC on and no uncorrected error on {report.attached} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
