"""Has memory had errors that ECC could not correct, or too many that it could?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude, unknown
from inventory.model import Profile

ID = "host.edac"
COUNTS = Collect("host.edac", file="/sys/devices/system/edac/mc/mc*/[cu]e_*count")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on uncorrected errors; warn past `host.edac_corrected_max` corrected ones (100)."""
    most = limits.optional_number(profile, "host.edac_corrected_max", 100)
    found = files(evidence, COUNTS.id)
    findings, seen = [], 0
    for path, text in found.items():
        controller, kind = path.split("/")[-2], path.rsplit("/", 1)[-1]
        if not text.strip().isdecimal():
            raise Unreadable(path, f"it says {text.strip()[:20]!r}")
        seen += kind == "ue_count"
        count = int(text)
        if kind.startswith("ue") and count:
            message = f"{count} uncorrected memory errors on {controller}"
            findings.append(Finding("memory", controller, message, Action.VENDOR_TICKET))
        elif kind.startswith("ce") and count > most:
            message = f"{count} corrected memory errors on {controller}"
            findings.append(Finding("memory", controller, message, Action.INVESTIGATE, Status.WARN))
    if not seen:
        return unknown(ID, "memory", "no memory controller counts its errors")
    return conclude(ID, findings, f"no uncorrected error on {seen} memory controllers")


CHECK = Check(id=ID, level=Level.QUICK, collects=(COUNTS,), judge=judge)
