"""Are the GPUs' spare memory rows in order: none pending, none failed, some left?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.remap"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on a pending or failed remapping; warn past `gpu.remap.rows_watch` rows (10 where not stated)."""
    watch = limits.optional_number(profile, "gpu.remap.rows_watch", gpu.ROWS_WATCH)
    report = smi_report(evidence)
    findings = [found for one in report.gpus for found in gpu.remap(one, wanted=True, watch=watch)]
    rows = [count for one in report.gpus if (count := gpu.remapped_rows(one)) is not None]
    metrics = {"gpu.remapped_rows": max(rows)} if rows else {}
    return conclude(ID, findings, f"no remapping pending or failed on {report.attached} GPUs", metrics)


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
