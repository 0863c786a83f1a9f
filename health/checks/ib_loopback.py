"""Does every adapter write to itself at speed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.ib_source import IB, ib_ports
from health.checks.sources import files
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.benchmark import read_transfers
from health.rules.speed import Measured, judge_speed, lowest
from inventory.model import Profile

ID = "ib.loopback"
LOOPBACK = Collect(
    "ib.loopback",
    argv=("sh", "-c", "@loopback.sh", "loopback", "{name}"),
    each="/sys/class/infiniband/*",
    timeout_s=300,
    alone=True,
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare ib_write_bw on each adapter of `ib.hcas` with `ib.loopback_gbps_min`."""
    wanted = limits.words(profile, "ib.hcas")
    floor = limits.number(profile, "ib.loopback_gbps_min")
    devices = {one.device: one.identity for one in ib_ports(evidence) if one.pci in wanted}
    texts = {path.rsplit("/", 1)[-1]: text for path, text in files(evidence, LOOPBACK.id).items()}
    findings, values = [], []
    for device, identity in devices.items():
        try:
            row = max(read_transfers(texts.get(device, "")), key=lambda row: row.size)
        except Unreadable as exc:
            findings.append(Finding("nic", identity, str(exc), Action.RERUN, Status.UNKNOWN))
            continue
        if row.unit != "Gb/s":
            raise Unreadable("perftest", f"it measures in {row.unit}")
        values.append(Measured("ib.loopback", "nic", identity, row.average, row.unit))
        findings += judge_speed(evidence, values[-1], floor, Action.RESEAT)
    if len(devices) < len(wanted):
        message = f"only {len(devices)} of {len(wanted)} adapters show ports"
        findings.append(Finding("nic", "adapters", message, Action.RERUN, Status.UNKNOWN))
    return conclude(ID, findings, f"{len(values)} adapters at speed", lowest(values))


CHECK = Check(id=ID, level=Level.FULL, collects=(LOOPBACK, *IB), judge=judge)
