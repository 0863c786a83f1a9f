"""Are all NVLinks of every GPU up, and as fast as the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.smi_messages import read_links
from health.rules import expect
from health.rules.gpu import judge_links
from inventory.model import Profile

ID = "nvlink.links"
LINKS = Collect("nvlink.status", argv=("nvidia-smi", "nvlink", "-s"), timeout_s=25)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `nvlink.links` a GPU and `nvlink.speed_gbps` GB/s a link."""
    wanted = int(limits.number(profile, "nvlink.links"))
    speed = limits.number(profile, "nvlink.speed_gbps")
    count = int(limits.number(profile, "gpu.count"))
    found = read_links(whole(evidence, LINKS.id).text)
    findings = judge_links(found, count=wanted)
    findings += expect.count("nvlink", len(found), count, "GPUs with NVLinks shown", Action.RERUN)
    for one in found:
        slow = [number for number, rate in one.links.items() if rate is not None and rate < speed]
        if slow:
            message = f"NVLink {', '.join(map(str, slow))} below {speed:g} GB/s on GPU {one.index}"
            findings.append(Finding("nvlink", one.uuid, message, Action.GPU_RESET))
    return conclude(ID, findings, f"{wanted} links on each of {len(found)} GPUs")


CHECK = Check(id=ID, level=Level.QUICK, collects=(LINKS,), judge=judge)
