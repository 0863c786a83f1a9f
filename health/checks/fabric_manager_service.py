"""Does the fabric manager run, in the driver's own version?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import NVIDIA_SMI, SERVICES, smi_report, whole
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude, skipped
from health.readers.json_text import only
from health.readers.service import read_units
from health.rules.service import judge_status
from inventory.model import Profile

ID = "fabric_manager.service"
VERSION = Collect("fabric_manager.version", argv=("nv-fabricmanager", "--version"))
_UNIT = "nvidia-fabricmanager.service"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail unless the unit is active and its version is the driver's; skipped where `nvswitch.count` is 0."""
    if limits.number(profile, "nvswitch.count") == 0:
        return skipped(ID, "the profile has no NVSwitch")
    units = [one for one in read_units(whole(evidence, SERVICES.id).text) if one.name == _UNIT]
    findings = judge_status(units)
    if not units:
        findings.append(Finding("service", _UNIT, f"{_UNIT} is not installed", Action.REIMAGE))
    driver = smi_report(evidence).driver or "unknown"
    text = whole(evidence, VERSION.id).text
    said = only("nv-fabricmanager --version", r"^Fabric Manager version is : (\d{3}\.\d+(?:\.\d+)?)$", text)
    if said[1] != driver:
        message = f"fabric manager {said[1]} does not fit driver {driver}"
        findings.append(Finding("service", _UNIT, message, Action.REIMAGE))
    return conclude(ID, findings, f"fabric manager {said[1]} runs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(SERVICES, NVIDIA_SMI, VERSION), judge=judge)
