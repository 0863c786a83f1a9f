"""Has the node finished starting, in one boot that is still running?"""

from __future__ import annotations

from health.check import Check, Collect, Level
from health.checks.sources import ended
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude, unknown
from inventory.model import Profile

ID = "host.boot"
SYSTEM_STATE = Collect("host.system_state", argv=("systemctl", "is-system-running"))


def judge(evidence: Evidence, _: Profile) -> Outcome:
    """Look at systemd's own state; units that failed are another check's matter."""
    state = ended(evidence, SYSTEM_STATE.id, 0, 1).text.strip()
    boot = evidence.began.boot_id
    if state in ("running", "degraded"):
        return conclude(ID, (), f"up {evidence.began.uptime_s:.0f} s in boot {boot}")
    if state in ("initializing", "starting"):
        return unknown(ID, "host", f"still starting ({state})")
    if state in ("maintenance", "stopping"):
        return conclude(ID, (Finding("host", boot, f"systemd is in state {state}", Action.REBOOT),), "")
    finding = Finding("host", boot, f"systemd's state is {state[:40]!r}", Action.INVESTIGATE, Status.UNKNOWN)
    return conclude(ID, (finding,), "")


CHECK = Check(id=ID, level=Level.QUICK, collects=(SYSTEM_STATE,), judge=judge)
