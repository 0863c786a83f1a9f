"""Are the adapters of the profile there, by their PCI addresses, with the firmware it names?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.ib_source import IB, ib_ports
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "ib.devices"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the list `ib.hcas` and the patterns `ib.firmware`."""
    wanted = limits.words(profile, "ib.hcas")
    firmware = limits.words(profile, "ib.firmware")
    ports = [one for one in ib_ports(evidence) if one.pci in wanted]
    findings = expect.same_set("nic", [one.pci for one in ports], wanted, "adapter", Action.RESEAT)
    for one in ports:
        findings += expect.one_of(
            "nic", one.identity, one.firmware or "unknown", firmware, "firmware", Action.REIMAGE
        )
    return conclude(ID, findings, f"{len(wanted)} adapters")


CHECK = Check(id=ID, level=Level.QUICK, collects=IB, judge=judge)
