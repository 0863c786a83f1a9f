"""Does the clock follow a time server, closely?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.evidence import Evidence
from health.outcome import Action, Outcome, conclude, unknown
from health.readers.clock import read_chrony, read_timesync
from health.rules.clock import judge_clock
from inventory.model import Profile

ID = "host.time_sync"
CHRONY = Collect("host.chrony", argv=("chronyc", "-n", "tracking"))
TIMESYNC = Collect("host.timesync", argv=("timedatectl", "timesync-status"))


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Read chrony, else systemd-timesyncd; compare the offset with `host.clock_offset_s` (0.1)."""
    most = limits.optional_number(profile, "host.clock_offset_s", 0.1)
    chrony, timesync = evidence.item(CHRONY.id), evidence.item(TIMESYNC.id)
    if chrony is not None and chrony.ok:
        state = read_chrony(chrony.text)
    elif timesync is not None and timesync.ok:
        state = read_timesync(timesync.text)
    else:
        why = [one.problem for one in (chrony, timesync) if one is not None and one.problem]
        return unknown(ID, "host", "; ".join(why) or "no time service was asked", Action.RESTART_SERVICE)
    return conclude(ID, judge_clock(state, offset_max_s=most), f"follows {state.source or 'a time server'}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(CHRONY, TIMESYNC), judge=judge)
