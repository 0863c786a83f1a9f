"""Are all sensors of the BMC within their limits?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.ipmi import read_sensors
from health.rules.bmc import judge_sensors
from inventory.model import Profile

ID = "bmc.sensors"
SENSORS = Collect("bmc.sensors", argv=("ipmitool", "sdr", "elist"), needs_root=True, timeout_s=25)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge by the BMC's own state; there must be at least `bmc.sensors_min` of them."""
    least = int(limits.number(profile, "bmc.sensors_min"))
    found = read_sensors(whole(evidence, SENSORS.id).text)
    if len(set(found)) != len(found):
        raise Unreadable("ipmitool sdr elist", "a sensor comes twice")
    findings = judge_sensors(found)
    if len(found) < least:
        message = f"{len(found)} sensors of at least {least}"
        findings.append(Finding("bmc", "sensors", message, Action.RERUN, Status.UNKNOWN))
    return conclude(ID, findings, f"{len(found)} sensors within limits")


CHECK = Check(id=ID, level=Level.QUICK, collects=(SENSORS,), judge=judge)
