"""Are the GPUs of the model, and with the memory, that the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.rules import expect, gpu
from inventory.model import Profile

ID = "gpu.model"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `gpu.model` and `gpu.memory_mib`; serials must differ."""
    model = limits.words(profile, "gpu.model")
    memory = limits.number(profile, "gpu.memory_mib")
    found = gpus(evidence, profile)
    findings = expect.gpu_field(found, "product_name", model, "model", Action.INVESTIGATE)
    for one in found:
        findings += expect.gpu_number(
            one, "fb_memory_usage/total", memory, "memory in MiB", Action.VENDOR_TICKET
        )
    findings += [
        gpu.unreadable(one, "the serial")
        for one in found
        if one.value("serial_number") is None and one.fields.get("serial_number") != "N/A"
    ]
    serials = [one.value("serial_number") for one in found]
    twice = {serial for serial in serials if serial and serials.count(serial) > 1}
    findings += [
        Finding("gpu", serial, "two GPUs have this serial", Action.INVESTIGATE) for serial in sorted(twice)
    ]
    return conclude(ID, findings, f"{len(found)} x {found[0].value('product_name')}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
