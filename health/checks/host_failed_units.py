"""Has any systemd unit failed?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.readers.service import read_units
from health.rules.service import judge_units
from inventory.model import Profile

ID = "host.failed_units"
FAILED = Collect("host.failed", argv=("systemctl", "--failed", "--no-pager", "--plain", "--full"))


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on every failed unit; patterns of `host.failed_units_allowed` only warn."""
    allowed = limits.optional_words(profile, "host.failed_units_allowed")
    units = read_units(whole(evidence, FAILED.id).text)
    return conclude(ID, judge_units(units, allowed), "no failed unit")


CHECK = Check(id=ID, level=Level.QUICK, collects=(FAILED,), judge=judge)
