"""Are the GPUs' spare memory rows in order: none pending, none failed, some left?"""

from __future__ import annotations

from collections.abc import Iterator

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.smi import Gpu
from inventory.model import Profile

ID = "gpu.remap"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on a pending or failed remapping; warn past `gpu.remap.rows_watch` rows (10 where not stated)."""
    watch = limits.optional_number(profile, "gpu.remap.rows_watch", 10)
    report = smi_report(evidence)
    findings = [finding for gpu in report.gpus for finding in _findings(gpu, watch)]
    return conclude(ID, findings, f"no remapping pending or failed on {report.attached} GPUs")


def _findings(gpu: Gpu, watch: float) -> Iterator[Finding]:
    who = f"{gpu.serial} at {gpu.address}"
    pending = gpu.value("remapped_rows/pending")
    failed = gpu.value("remapped_rows/remapping_failure_occurred")
    rows = gpu.number("remapped_rows/uncorrectable_error")
    if pending not in ("Yes", "No") or failed not in ("Yes", "No") or rows is None:
        yield Finding("gpu", who, "remapped rows cannot be read", Action.RERUN, Status.UNKNOWN)
        return
    if failed == "Yes":
        yield Finding("gpu", who, "a row could not be remapped: no spare is left", Action.VENDOR_TICKET)
    if pending == "Yes":
        yield Finding("gpu", who, "a row waits for remapping until the GPU is reset", Action.GPU_RESET)
    if rows > watch:
        message = f"{rows:.0f} rows remapped after uncorrected errors"
        yield Finding("gpu", who, message, Action.INVESTIGATE, Status.WARN)


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
