"""Are all NVSwitches on the PCI bus, each with its driver?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import PCI_DEVICES, PCI_LINKS, pci_devices
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "nvswitch.count"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `nvswitch.count`."""
    wanted = int(limits.number(profile, "nvswitch.count"))
    switches = [one for one in pci_devices(evidence) if one.vendor == "10de" and one.kind.startswith("0680")]
    findings = expect.count("nvswitch", len(switches), wanted, "NVSwitches", Action.POWER_CYCLE)
    findings += [
        Finding("nvswitch", one.address, "no driver is bound to it", Action.REBOOT)
        for one in switches
        if one.driver != "nvidia-nvswitch"
    ]
    return conclude(ID, findings, f"{wanted} NVSwitches")


CHECK = Check(id=ID, level=Level.QUICK, collects=(PCI_DEVICES, PCI_LINKS), judge=judge)
