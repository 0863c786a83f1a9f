"""Has any systemd unit failed?"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from inventory.model import Profile

ID = "host.failed_units"
FAILED = Collect("host.failed", argv=("systemctl", "--failed", "--no-pager", "--plain", "--full"))
_COUNT = re.compile(r"^(\d+) loaded units listed\.")
_ROW = re.compile(
    r"^[●*]?\s*(?P<unit>\S+\.[a-z]+)\s+(?P<load>\S+)\s+(?P<active>\S+)\s+(?P<sub>\S+)\s*(?P<about>.*)$"
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Fail on every failed unit; patterns of `host.failed_units_allowed` only warn."""
    allowed = limits.optional_words(profile, "host.failed_units_allowed")
    findings = []
    for unit, about in read_failed(whole(evidence, FAILED.id).text):
        mild = any(fnmatchcase(unit, pattern) for pattern in allowed)
        status = Status.WARN if mild else Status.FAIL
        findings.append(Finding("service", unit, f"{unit} failed ({about})", Action.RESTART_SERVICE, status))
    return conclude(ID, findings, "no failed unit")


def read_failed(text: str) -> tuple[tuple[str, str], ...]:
    """Read the units and their descriptions. Raises Unreadable unless systemctl's own count agrees."""
    rows = []
    count = None
    for line in text.splitlines():
        if found := _COUNT.match(line.strip()):
            count = int(found[1])
        elif (row := _ROW.match(line.strip())) and row["active"] == "failed":
            rows.append((row["unit"], row["about"].strip() or row["sub"]))
    if count is None:
        raise Unreadable("systemctl --failed", "its last line, the count, is missing")
    if count != len(rows):
        raise Unreadable("systemctl --failed", f"it counts {count} units and lists {len(rows)}")
    return tuple(rows)


CHECK = Check(id=ID, level=Level.QUICK, collects=(FAILED,), judge=judge)
