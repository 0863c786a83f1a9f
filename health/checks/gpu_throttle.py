"""Does anything but idling or the power cap hold a GPU's clocks down?"""

from __future__ import annotations

from dataclasses import replace

from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Outcome, Status, conclude
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.throttle"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on thermal slowdown and power brake. All GPUs at once are the node's power, not bad parts."""
    found = gpus(evidence, profile)
    findings = [finding for one in found for finding in gpu.throttle(one, wanted=True)]
    failed = [finding for finding in findings if finding.status is Status.FAIL]
    if len(found) > 1 and len(failed) == len(found):
        message = f"all {len(found)} GPUs are {failed[0].message}: look at the node's power and cooling"
        return conclude(
            ID, [replace(failed[0], component="power", identity="node power", message=message)], ""
        )
    return conclude(ID, findings, f"{len(found)} GPUs run unhindered")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
