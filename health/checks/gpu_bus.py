"""Does the PCI bus show the GPUs that the driver shows, each bound to it?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, PCI_DEVICES, PCI_LINKS, pci_devices, smi_report
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "gpu.bus"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare count and addresses of the bus with `gpu.count` and with nvidia-smi."""
    wanted = int(limits.number(profile, "gpu.count"))
    on_bus = [
        one for one in pci_devices(evidence) if one.vendor == "10de" and one.kind[:4] in ("0302", "0300")
    ]
    findings = expect.count("gpu", len(on_bus), wanted, "GPUs on the PCI bus", Action.RESEAT)
    findings += [
        Finding("gpu", one.address, f"bound to {one.driver or 'no driver'}, not to nvidia", Action.REBOOT)
        for one in on_bus
        if one.driver != "nvidia"
    ]
    seen = [one.address for one in smi_report(evidence).gpus]
    findings += expect.same_set(
        "gpu", seen, [one.address for one in on_bus], "GPU in nvidia-smi", Action.POWER_CYCLE
    )
    return conclude(ID, findings, f"{len(on_bus)} GPUs on the bus, all with the driver")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI, PCI_DEVICES, PCI_LINKS), judge=judge)
