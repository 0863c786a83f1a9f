"""Do the services that the profile names run?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import SERVICES, whole
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.service import read_units
from health.rules.service import judge_status
from inventory.model import Profile

ID = "host.services"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the list `host.services`."""
    wanted = limits.words(profile, "host.services")
    units = {one.name: one for one in read_units(whole(evidence, SERVICES.id).text)}
    findings = []
    for name in wanted:
        unit = units.get(name if "." in name else f"{name}.service")
        if unit is None or unit.load == "not-found":
            findings.append(Finding("service", name, f"{name} is not installed", Action.REIMAGE))
        else:
            findings += judge_status([unit])
    return conclude(ID, findings, f"{', '.join(wanted)} run")


CHECK = Check(id=ID, level=Level.QUICK, collects=(SERVICES,), judge=judge)
