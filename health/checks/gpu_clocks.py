"""Can every GPU reach its clocks?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.rules import expect, gpu
from inventory.model import Profile

ID = "gpu.clocks"
# Newer parts have no such clocks.
_ABSENT = re.compile(r"(?i)\[?N/A|.*deprecated|\[?not supported")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the highest SM and memory clocks with `gpu.clock_sm_mhz` and `gpu.clock_memory_mhz`."""
    sm = limits.number(profile, "gpu.clock_sm_mhz")
    memory = limits.number(profile, "gpu.clock_memory_mhz")
    found = gpus(evidence, profile)
    findings = []
    for one in found:
        findings += expect.gpu_number(one, "max_clocks/sm", sm, "highest SM clock in MHz", Action.INVESTIGATE)
        findings += expect.gpu_number(
            one, "max_clocks/memory", memory, "highest memory clock in MHz", Action.INVESTIGATE
        )
        application = one.number("applications_clocks/graphics")
        said = one.fields.get("applications_clocks/graphics", "")
        if application is None and one.has("applications_clocks") and not _ABSENT.match(said):
            findings.append(gpu.unreadable(one, "the application clock"))
        if application is not None and application < sm:
            message = f"application clock is set to {application:g} MHz of {sm:g}"
            findings.append(Finding("gpu", one.name, message, Action.RESTART_SERVICE))
    return conclude(ID, findings, f"{sm:g} MHz on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
