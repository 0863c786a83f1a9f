"""Have PCIe devices counted errors?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from inventory.model import Profile

ID = "pcie.errors"
COUNTERS = Collect("pcie.errors", file="/sys/bus/pci/devices/*/aer_dev_*", limit_bytes=2_097_152)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on fatal and non-fatal errors; warn past `pcie.corrected_max` corrected ones (1000)."""
    most = limits.optional_number(profile, "pcie.corrected_max", 1000)
    found = files(evidence, COUNTERS.id)
    findings = []
    for path, text in found.items():
        address, kind = path.split("/")[-2], path.rsplit("_", 1)[-1]
        total = re.search(r"^TOTAL_ERR_\w+ (\d+)$", text, re.MULTILINE)
        if not total:
            raise Unreadable(path, "it has no total")
        count = int(total[1])
        if kind in ("fatal", "nonfatal") and count:
            findings.append(Finding("pcie", address, f"{count} {kind} PCIe errors", Action.RESEAT))
        elif kind == "correctable" and count > most:
            message = f"{count} corrected PCIe errors"
            findings.append(Finding("pcie", address, message, Action.INVESTIGATE, Status.WARN))
    return conclude(ID, findings, f"no uncorrected error in {len(found)} counters")


CHECK = Check(id=ID, level=Level.QUICK, collects=(COUNTERS,), judge=judge)
