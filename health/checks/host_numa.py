"""Are all NUMA nodes online?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.host_cpus import cpu_set
from health.checks.sources import word
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "host.numa"
NODES = Collect("cpu.numa", file="/sys/devices/system/node/online")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.numa_nodes`."""
    wanted = int(limits.number(profile, "host.numa_nodes"))
    online = cpu_set(word(evidence, NODES.id))
    findings = expect.count("cpu", len(online), wanted, "NUMA nodes", Action.RESEAT)
    return conclude(ID, findings, f"{wanted} NUMA nodes")


CHECK = Check(id=ID, level=Level.QUICK, collects=(NODES,), judge=judge)
