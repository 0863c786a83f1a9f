"""Do copies between host and GPUs, and between GPUs, reach their speed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.speed import read_copies
from health.rules.speed import Measured, judge_speed, lowest
from inventory.model import Profile

ID = "gpu.copy"
_TO, _FROM, _PEER = "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce"
COPIES = Collect(
    "gpu.copies",
    argv=("nvbandwidth", "-t", _TO, _FROM, _PEER),
    timeout_s=600,
    limit_bytes=1_048_576,
    alone=True,
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare each GPU with `gpu.copy_host_gbps_min`, each pair with `gpu.copy_peer_gbps_min`."""
    count = int(limits.number(profile, "gpu.count"))
    host = limits.number(profile, "gpu.copy_host_gbps_min")
    peer = limits.number(profile, "gpu.copy_peer_gbps_min")
    found = read_copies(whole(evidence, COPIES.id).text)
    wanted = {_TO: count, _FROM: count, _PEER: count * (count - 1)}
    for test, cells in wanted.items():
        seen = sum(name == test for name, _, _ in found.speeds)
        if seen != cells:
            raise Unreadable("nvbandwidth", f"{test} shows {seen} of {cells} values")
    findings, values = [], []
    for (test, row, column), speed in found.speeds.items():
        pair = test == _PEER
        ends = [found.gpus.get(n, f"GPU {n}") for n in ((row, column) if pair else (column,))]
        metric = "gpu.copy.peer" if pair else "gpu.copy.to_gpu" if test == _TO else "gpu.copy.from_gpu"
        values.append(Measured(metric, "gpu", " to ".join(ends), speed, "GB/s"))
        findings += judge_speed(evidence, values[-1], peer if pair else host, Action.INVESTIGATE)
    return conclude(ID, findings, f"{len(values)} paths at speed", lowest(values))


CHECK = Check(id=ID, level=Level.FULL, collects=(COPIES,), judge=judge)
