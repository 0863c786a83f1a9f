"""Does every NVMe drive read at speed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.readers.speed import read_fio
from health.rules import expect
from health.rules.speed import Measured, judge_speed, lowest
from inventory.model import Profile

ID = "disk.speed"
READS = Collect(
    "disk.reads",
    argv=(
        "fio", "--name=read", "--filename=/dev/{name}", "--readonly", "--rw=read", "--bs=1M", "--iodepth=32",
        "--ioengine=libaio", "--direct=1", "--runtime=5", "--time_based", "--output-format=json",
    ),
    each="/sys/block/nvme*n1",
    needs_root=True,
    timeout_s=300,
    limit_bytes=1_048_576,
    alone=True,
)  # fmt: skip


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare what fio reads of each of `disk.drives` with `disk.read_mb_s_min`; nothing is written."""
    floor = limits.number(profile, "disk.read_mb_s_min")
    wanted = int(limits.number(profile, "disk.drives"))
    found = files(evidence, READS.id)
    findings, values = [], []
    for path, text in sorted(found.items()):
        name = path.rsplit("/", 1)[-1]
        values.append(Measured("disk.read", "disk", name, read_fio(text) / 1e6, "MB/s"))
        findings += judge_speed(evidence, values[-1], floor, Action.INVESTIGATE)
    findings += expect.count("disk", len(values), wanted, "NVMe drives", Action.RESEAT)
    return conclude(ID, findings, f"{len(values)} drives at speed", lowest(values))


CHECK = Check(id=ID, level=Level.FULL, collects=(READS,), judge=judge)
