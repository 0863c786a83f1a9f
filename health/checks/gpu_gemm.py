"""Do all GPUs multiply matrices right, and fast, all at once?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import NVIDIA_SMI, smi_report, whole
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.smi import SmiReport
from health.readers.speed import read_products
from health.rules.speed import Measured, judge_speed, lowest
from inventory.model import Profile

ID = "gpu.gemm"
GEMM = Collect("gpu.gemm", argv=("python3", "-c", "@gemm.py", "gpu", "20"), timeout_s=300, alone=True)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `gpu.count`, `gpu.gemm_fp16_tflops_min` and `gpu.gemm_fp32_tflops_min`."""
    wanted = int(limits.number(profile, "gpu.count"))
    floors = {kind: limits.number(profile, f"gpu.gemm_{kind}_tflops_min") for kind in ("fp16", "fp32")}
    report = smi_report(evidence)
    products = read_products(whole(evidence, GEMM.id).text)
    findings, values = [], []
    for one in products:
        who = _name(report, one.gpu)
        if one.wrong:
            message = f"{one.wrong} rows of {one.kind} products were wrong: the GPU computes falsely"
            findings.append(Finding("gpu", who, message, Action.VENDOR_TICKET))
        values.append(Measured(f"gpu.gemm.{one.kind}", "gpu", who, one.tflops, "TFLOP/s"))
        if one.kind in floors:
            findings += judge_speed(evidence, values[-1], floors[one.kind], Action.INVESTIGATE)
    tested = len({one.gpu for one in products})
    if tested != wanted or {one.kind for one in products} != set(floors):
        message = f"{tested} of {wanted} GPUs multiplied"
        findings.append(Finding("gpu", "GPUs of this node", message, Action.POWER_CYCLE))
    return conclude(ID, findings, f"{tested} GPUs multiply right and fast", lowest(values))


def _name(report: SmiReport, index: int) -> str:
    """Name a GPU as the driver numbers it, by its place on the bus."""
    ordered = sorted(report.gpus, key=lambda gpu: gpu.address)
    return ordered[index].name if index < len(ordered) else f"GPU {index}"


CHECK = Check(id=ID, level=Level.FULL, collects=(GEMM, NVIDIA_SMI), judge=judge)
