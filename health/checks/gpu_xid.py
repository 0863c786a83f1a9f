"""Has the driver logged an Xid that says the hardware is bad, since boot or the last repair?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.kernel_source import JOURNAL, KMSG, kernel_log
from health.checks.sources import NVIDIA_SMI, smi_report
from health.errors import HealthError
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules.xid import Memory, events, judge_events
from inventory.model import Profile

ID = "gpu.xid"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge by the catalogue; a code that only counts fails past `gpu.xid.count_max` incidents (5)."""
    most = int(limits.optional_number(profile, "gpu.xid.count_max", 5))
    log = kernel_log(evidence)
    found = [one for one in events(log.lines) if one.kind == "xid"]
    findings = judge_events(found, memory=_memory(evidence), count_max=most)
    return conclude(ID, [*findings, *log.unproven()], f"{len(found)} Xid lines, none of consequence")


def _memory(evidence: Evidence) -> Memory:
    """Return which GPUs wait for a row to be remapped; of those not shown, nothing is known."""
    try:
        report = smi_report(evidence)
    except HealthError:
        return Memory({})
    pending = {one.address: one.value("remapped_rows/pending") for one in report.gpus}
    return Memory({address: state == "Yes" for address, state in pending.items() if state in ("Yes", "No")})


CHECK = Check(id=ID, level=Level.QUICK, collects=(KMSG, JOURNAL, NVIDIA_SMI), judge=judge)
