"""Does the BMC's event log hold anything that still stands?"""

from __future__ import annotations

from datetime import UTC, datetime

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.readers.ipmi import read_sel
from health.readers.json_text import only
from health.rules.bmc import judge_events, judge_unlisted
from inventory.model import Profile

ID = "bmc.events"
LOG = Collect("bmc.sel", argv=("ipmitool", "sel", "elist"), needs_root=True, timeout_s=25)
INFO = Collect("bmc.sel_info", argv=("ipmitool", "sel", "info"), needs_root=True, timeout_s=15)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge the log as the node itself reads it; `bmc.events_days` leaves older events out."""
    days = limits.optional_number(profile, "bmc.events_days", 0)
    info = whole(evidence, INFO.id).text
    only("ipmitool sel info", r"^Overflow\s*:", info)
    counted = int(only("ipmitool sel info", r"^Entries\s*:\s*(\d+)\s*$", info)[1])
    text = whole(evidence, LOG.id).text
    found = read_sel(text) if counted or text.strip() else ()
    ids = {one.id for one in found}
    # An event may come between the two readings; none may be missing, or be there twice.
    if len(found) < counted or len(ids) != len(found):
        raise Unreadable("ipmitool sel elist", f"it lists {len(found)} of {counted} events")
    cut = [one.id for one in found if one.asserted is None and "OEM record" not in one.event]
    if cut:
        raise Unreadable("ipmitool sel elist", f"event {cut[0]} does not say whether it still stands")
    recent = tuple(one for one in found if not days or _younger(one.date, evidence.ended.wall_clock, days))
    findings = [*judge_events(recent), *judge_unlisted(recent)]
    return conclude(ID, findings, f"{len(recent)} events, none standing")


def _younger(date: str, now: float, days: float) -> bool:
    """Say whether an event is of the last days; one without a date may be."""
    try:
        then = datetime.strptime(date, "%m/%d/%Y").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return True
    return now - then < days * 86400


CHECK = Check(id=ID, level=Level.QUICK, collects=(LOG, INFO), judge=judge)
