"""Does the driver see as many GPUs as the profile says, and do all of them answer?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.smi import SmiReport
from health.readers.smi_messages import read_messages
from health.rules.gpu import answers, judge_messages
from inventory.model import Profile

ID = "gpu.count"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the driver's count with the limit `gpu.count`; a GPU that is named as lost fails at once."""
    wanted = int(limits.number(profile, "gpu.count"))
    item = evidence.item(NVIDIA_SMI.id)
    if item is not None and item.problem and not item.missing:
        named = judge_messages(read_messages(f"{item.text}\n{item.errors}"))
        if named:
            return conclude(ID, named, "")
    report = smi_report(evidence)
    return conclude(ID, [*_count(report, wanted), *answers(report.gpus)], f"{wanted} GPUs")


def _count(report: SmiReport, wanted: int) -> list[Finding]:
    attached = len(report.gpus)
    if attached == wanted:
        return []
    seen = ", ".join(gpu.address for gpu in report.gpus) or "none"
    if attached < wanted:
        message = f"{attached} of {wanted} GPUs; seen: {seen}"
        return [Finding("gpu", "GPUs of this node", message, Action.POWER_CYCLE)]
    message = f"{attached} GPUs where the profile says {wanted}; seen: {seen}"
    return [Finding("gpu", "GPUs of this node", message, Action.INVESTIGATE)]


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
