"""Is ECC on, and has any GPU memory error gone uncorrected?"""

from __future__ import annotations

from collections.abc import Iterator

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.smi import Gpu
from inventory.model import Profile

ID = "gpu.ecc"

# Since the driver loaded: any of these is an error that a program may have computed with.
_UNCORRECTED_NOW = (
    "ecc_errors/volatile/sram_uncorrectable",
    "ecc_errors/volatile/sram_uncorrectable_parity",
    "ecc_errors/volatile/sram_uncorrectable_sec_ded",
    "ecc_errors/volatile/dram_uncorrectable",
    "ecc_errors/volatile/double_bit/total",
)
_SRAM_UNCORRECTED_EVER = (
    "ecc_errors/aggregate/sram_uncorrectable",
    "ecc_errors/aggregate/sram_uncorrectable_parity",
    "ecc_errors/aggregate/sram_uncorrectable_sec_ded",
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on ECC that is off, on any volatile uncorrected error, and on SRAM errors past the limit.

    `gpu.ecc.sram_uncorrected_max` is how many a part may have had in its life (4 where not stated).
    """
    most = limits.optional_number(profile, "gpu.ecc.sram_uncorrected_max", 4)
    report = smi_report(evidence)
    findings = [finding for gpu in report.gpus for finding in _findings(gpu, most)]
    return conclude(ID, findings, f"ECC on and no uncorrected error on {report.attached} GPUs")


def _findings(gpu: Gpu, most: float) -> Iterator[Finding]:
    who = f"{gpu.serial} at {gpu.address}"
    current = gpu.value("ecc_mode/current")
    counts = {path: gpu.number(path) for path in _UNCORRECTED_NOW if path in gpu.fields}
    known = [count for count in counts.values() if count is not None]
    if current is None or not known or len(known) != len(counts):
        yield Finding("gpu", who, "ECC state or counters cannot be read", Action.RERUN, Status.UNKNOWN)
        return
    if current != "Enabled":
        yield Finding("gpu", who, f"ECC is {current}", Action.REBOOT)
    if sum(known):
        message = f"{sum(known):.0f} uncorrected memory errors since the driver loaded"
        yield Finding("gpu", who, message, Action.GPU_RESET)
    ever = sum(gpu.number(path) or 0 for path in _SRAM_UNCORRECTED_EVER)
    if gpu.value("ecc_errors/aggregate/sram_threshold_exceeded") == "Yes" or ever > most:
        message = f"{ever:.0f} uncorrected SRAM errors in its life: past the maker's threshold"
        yield Finding("gpu", who, message, Action.VENDOR_TICKET)


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
