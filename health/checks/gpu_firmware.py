"""Are VBIOS, InfoROM image and GSP firmware those of the profile, the same on every GPU?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus, smi_report
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "gpu.firmware"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `gpu.vbios` and `gpu.inforom`; GSP firmware must be of the driver's version."""
    vbios = limits.words(profile, "gpu.vbios")
    inforom = limits.optional_words(profile, "gpu.inforom")
    report = smi_report(evidence)
    found = gpus(evidence, profile)
    findings = expect.gpu_field(found, "vbios_version", vbios, "VBIOS", Action.INVESTIGATE)
    if inforom:
        findings += expect.gpu_field(
            found, "inforom_version/image_version", inforom, "InfoROM", Action.INVESTIGATE
        )
    driver = report.driver or "unknown"
    findings += expect.gpu_field(found, "gsp_firmware_version", (driver,), "GSP firmware", Action.REIMAGE)
    return conclude(ID, findings, f"VBIOS {found[0].value('vbios_version')} on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
