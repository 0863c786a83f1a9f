"""Does the host's memory move data at speed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.speed import read_sysbench_memory
from health.rules.speed import Measured, judge_speed, lowest
from inventory.model import Profile

ID = "host.memory_speed"
MEMORY = Collect(
    "host.memory_speed",
    argv=(
        "sysbench", "memory", "--memory-block-size=64M", "--memory-total-size=100T", "--memory-oper=read",
        "--time=10", "--threads=${host.cpus}", "run",
    ),
    timeout_s=120,
    alone=True,
)  # fmt: skip


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare sysbench on all CPUs with `host.memory_mib_s_min`: a slow or missing channel shows here."""
    floor = limits.number(profile, "host.memory_mib_s_min")
    speed = read_sysbench_memory(whole(evidence, MEMORY.id).text)
    value = Measured("host.memory", "memory", "DIMMs of this node", speed, "MiB/s")
    findings = judge_speed(evidence, value, floor, Action.INVESTIGATE)
    return conclude(ID, findings, f"{speed:.0f} MiB/s", lowest([value]))


CHECK = Check(id=ID, level=Level.FULL, collects=(MEMORY,), judge=judge)
