"""Are all fabric ports in the partition that the profile says?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.ib_source import IB, ib_ports
from health.checks.sources import files
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.rules import expect
from inventory.model import Profile

ID = "ib.partition"
KEYS = Collect("ib.pkeys", file="/sys/class/infiniband/*/ports/*/pkeys/0")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the first P_Key of every port of `ib.hcas` with `ib.pkey`; without it, they must only agree."""
    wanted = limits.words(profile, "ib.hcas")
    expected = limits.optional_words(profile, "ib.pkey")
    devices = {one.device: one.identity for one in ib_ports(evidence) if one.pci in wanted}
    keys = {path.split("/")[4]: text.strip() for path, text in files(evidence, KEYS.id).items()}
    findings = []
    for device, identity in devices.items():
        key = keys.get(device)
        if key is None:
            findings.append(
                Finding("nic", identity, "its P_Key cannot be read", Action.RERUN, Status.UNKNOWN)
            )
        elif expected:
            findings += expect.one_of("nic", identity, key, expected, "P_Key", Action.INVESTIGATE)
    distinct = sorted({keys[device] for device in devices if device in keys})
    if len(distinct) > 1:
        message = f"ports are in different partitions: {', '.join(distinct)}"
        findings.append(Finding("fabric", "ports of this node", message, Action.INVESTIGATE))
    if len(devices) < len(wanted):
        message = f"only {len(devices)} of {len(wanted)} adapters show ports"
        findings.append(Finding("nic", "adapters", message, Action.RERUN, Status.UNKNOWN))
    return conclude(ID, findings, f"{len(devices)} ports in {', '.join(distinct)}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(*IB, KEYS), judge=judge)
