"""Are GPU memory pages in order, on parts that retire pages instead of remapping rows?"""

from __future__ import annotations

from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Outcome, conclude, skipped
from health.rules import gpu
from inventory.model import Profile

ID = "gpu.retired"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on a page that waits for retirement or a full table; a part that remaps rows is skipped."""
    found = gpus(evidence, profile)
    if all(one.value("remapped_rows/pending") in ("Yes", "No") for one in found):
        return skipped(ID, "these GPUs remap rows instead")
    findings = [finding for one in found for finding in gpu.retired_pages(one, wanted=True)]
    return conclude(ID, findings, f"no page waits on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
