"""Does every GPU, adapter and NVMe drive run its PCIe link as wide and fast as it and its slot can?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import PCI_DEVICES, PCI_LINKS, pci_devices
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude, unknown
from health.readers.pci import PciDevice
from inventory.model import Profile

ID = "pcie.links"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare current with highest width and speed; addresses in `pcie.links_allowed` are spared."""
    allowed = limits.optional_words(profile, "pcie.links_allowed")
    devices = [one for one in pci_devices(evidence) if _watched(one)]
    findings = []
    for one in devices:
        who = f"{one.address} [{one.vendor}:{one.device}]"
        if None in (one.width, one.width_max, one.speed, one.speed_max):
            findings.append(Finding("pcie", who, "its link cannot be read", Action.RERUN, Status.UNKNOWN))
        elif one.address not in allowed and (one.width, one.speed) != (one.width_max, one.speed_max):
            message = f"{one.speed} GT/s x{one.width}, could be {one.speed_max} GT/s x{one.width_max}"
            findings.append(Finding("pcie", who, message, Action.RESEAT))
    if not devices:
        return unknown(ID, "pcie", "no GPU, adapter or NVMe drive is on the bus", Action.POWER_CYCLE)
    return conclude(ID, findings, f"{len(devices)} devices at full width and speed")


def _watched(one: PciDevice) -> bool:
    """Say whether it is an NVIDIA or Mellanox endpoint, or an NVMe drive."""
    if one.kind.startswith("0108"):
        return True
    return one.vendor in ("10de", "15b3") and one.kind[:4] in ("0302", "0300", "0200", "0207", "0680")


CHECK = Check(id=ID, level=Level.QUICK, collects=(PCI_DEVICES, PCI_LINKS), judge=judge)
