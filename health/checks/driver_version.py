"""Is the driver, and CUDA with it, of the version that the profile names?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, smi_report
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "driver.version"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `driver.version` and, where stated, `driver.cuda`: lists of patterns."""
    wanted = limits.words(profile, "driver.version")
    cuda = limits.optional_words(profile, "driver.cuda")
    report = smi_report(evidence)
    if not report.driver:
        raise Unreadable("nvidia-smi -q", "it names no driver version")
    findings = expect.one_of("driver", "NVIDIA driver", report.driver, wanted, "driver", Action.REIMAGE)
    if cuda:
        findings += expect.one_of("driver", "CUDA", report.cuda or "absent", cuda, "CUDA", Action.REIMAGE)
    return conclude(ID, findings, f"driver {report.driver}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
