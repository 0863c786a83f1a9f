"""Do NVLink error counters grow?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.counting import window
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.smi_messages import read_link_counters
from inventory.model import Profile

ID = "nvlink.errors"
COUNTERS = Collect("nvlink.errors", argv=("nvidia-smi", "nvlink", "-e"), timeout_s=25)
LATER = Collect("nvlink.errors_later", argv=("nvidia-smi", "nvlink", "-e"), timeout_s=20, after_s=8)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on growth since the last acknowledged reading, else over the seconds between two readings."""
    most = limits.optional_number(profile, "nvlink.errors_max", 0)
    count = int(limits.number(profile, "gpu.count"))
    links = int(limits.number(profile, "nvlink.links"))
    found = window(evidence, COUNTERS.id, LATER.id, _read)
    seen = {name.split(" ", 1)[0] for name in found.by}
    if len(seen) < count or len(found.by) < count * links:
        raise Unreadable("nvidia-smi nvlink -e", f"it counts {len(found.by)} values of {len(seen)} GPUs")
    findings = [
        Finding("nvlink", name, f"{name} grew by {by} in {found.seconds:.0f} s", Action.GPU_RESET)
        for name, by in found.by.items()
        if by > most
    ]
    return conclude(ID, findings, f"no growth in {found.seconds:.0f} s on {len(seen)} GPUs")


def _read(text: str) -> dict[str, int]:
    counters = read_link_counters(text)
    return {f"{uuid} link {link} {name}": value for (uuid, link, name), value in counters.items()}


CHECK = Check(id=ID, level=Level.QUICK, collects=(COUNTERS, LATER), judge=judge)
