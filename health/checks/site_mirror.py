"""Can the node reach the site's package mirror?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import ended
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "site.mirror"
ANSWER = Collect(
    "site.mirror",
    argv=("curl", "-s", "-o", "/dev/null", "-m", "8", "-w", "%{http_code}", "${mirror.url}"),
    timeout_s=10,
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Ask `mirror.url`; any answer of the server below 500 will do."""
    limits.text(profile, "mirror.url")
    item = ended(evidence, ANSWER.id, 0, 6, 7, 22, 28, 35, 52, 56, 60)
    code = item.text.strip()
    if item.rc == 0 and re.fullmatch(r"[234]\d\d", code):
        return conclude(ID, (), f"answers {code}")
    if item.rc == 0:
        message, action = f"the package mirror answers {code or 'nothing'}", Action.RERUN
    else:
        message, action = f"the package mirror cannot be reached (curl {item.rc})", Action.INVESTIGATE
    return conclude(ID, (Finding("site", "mirror.url", message, action),), "")


CHECK = Check(id=ID, level=Level.QUICK, collects=(ANSWER,), judge=judge)
