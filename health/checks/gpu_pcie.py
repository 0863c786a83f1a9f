"""Do the GPUs run their PCIe links at full width and generation?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "gpu.pcie"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `gpu.pcie_width` and `gpu.pcie_gen`, which a data-centre part keeps when it idles."""
    width = limits.number(profile, "gpu.pcie_width")
    generation = limits.number(profile, "gpu.pcie_gen")
    found = gpus(evidence, profile)
    findings = []
    for one in found:
        base = "pci/gpu_link_info"
        findings += expect.gpu_number(one, f"{base}/link_width/current", width, "PCIe width", Action.RESEAT)
        kind = f"{base}/pcie_generation/current"
        findings += expect.gpu_number(one, kind, generation, "PCIe generation", Action.RESEAT)
    return conclude(ID, findings, f"gen {generation:g} x{width:g} on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
