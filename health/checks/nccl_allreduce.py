"""Do the GPUs of this node sum over NVLink, right and at speed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.benchmark import read_collectives
from health.readers.json_text import only
from health.rules.benchmark import judge_collectives
from health.rules.speed import Measured, judge_speed
from inventory.model import Profile

ID = "nccl.allreduce"
ALLREDUCE = Collect(
    "nccl.allreduce",
    argv=("all_reduce_perf", "-b", "1M", "-e", "8G", "-f", "2", "-g", "${gpu.count}"),
    timeout_s=600,
    alone=True,
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the bus bandwidth of the largest transfer with `nccl.busbw_gbps_min`."""
    floor = limits.number(profile, "nccl.busbw_gbps_min")
    count = int(limits.number(profile, "gpu.count"))
    text = whole(evidence, ALLREDUCE.id).text
    runs = read_collectives(text)
    only("all_reduce_perf", r"^# Out of bounds values : \d+ (?:OK|FAILED)\s*$", text)
    if len(runs) != 1 or runs[0].ranks != count or not runs[0].bandwidths:
        raise Unreadable("all_reduce_perf", f"it is not one run on {count} GPUs")
    findings = judge_collectives(runs)
    who = ", ".join(sorted(runs[0].nodes))
    value = Measured("nccl.allreduce", "nvlink", who, runs[0].bandwidths[-1], "GB/s")
    if not findings:
        findings = judge_speed(evidence, value, floor, Action.INVESTIGATE)
    return conclude(ID, findings, f"{value.value:.0f} GB/s over {count} GPUs", {value.metric: value.value})


CHECK = Check(id=ID, level=Level.FULL, collects=(ALLREDUCE,), judge=judge)
