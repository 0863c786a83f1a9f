"""Are persistence, compute and MIG mode set as the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.sources import NVIDIA_SMI, gpus
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "gpu.modes"
_MODES = (
    ("persistence_mode", "Enabled", "persistence_mode"),
    ("compute_mode", "Default", "compute_mode"),
    ("mig_mode", "Disabled", "mig_mode/current"),
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `gpu.persistence_mode`, `gpu.compute_mode`, `gpu.mig_mode`.

    Where not stated: Enabled, Default, Disabled.
    """
    found = gpus(evidence, profile)
    findings = []
    for name, usual, path in _MODES:
        wanted = limits.optional_words(profile, f"gpu.{name}") or (usual,)
        findings += expect.gpu_field(found, path, wanted, name.replace("_", " "), Action.RESTART_SERVICE)
    return conclude(ID, findings, f"modes as wanted on {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NVIDIA_SMI,), judge=judge)
