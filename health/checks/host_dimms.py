"""Are all DIMMs there, each of the size that the profile says?"""

from __future__ import annotations

import re

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.rules import expect
from inventory.model import Profile

ID = "host.dimms"
DIMMS = Collect("host.dimms", argv=("dmidecode", "--type", "17"), needs_root=True)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with `host.dimms` and `host.dimm_gib`."""
    wanted = int(limits.number(profile, "host.dimms"))
    size = limits.number(profile, "host.dimm_gib")
    text = whole(evidence, DIMMS.id).text
    blocks = text.split("Memory Device")[1:]
    if not blocks:
        raise Unreadable("dmidecode", "it shows no memory device")
    findings, seen = [], 0
    for block in blocks:
        amount = re.search(r"^\s*Size: (\d+) (GB|MB)$", block, re.MULTILINE)
        slot = re.search(r"^\s*Locator: (.+)$", block, re.MULTILINE)
        if not amount:
            continue
        seen += 1
        gib = int(amount[1]) / (1 if amount[2] == "GB" else 1024)
        if gib != size:
            name = slot[1].strip() if slot else "a slot"
            findings.append(
                Finding("memory", name, f"DIMM {name} has {gib:g} GiB of {size:g}", Action.RESEAT)
            )
    findings += expect.count("memory", seen, wanted, "DIMMs", Action.RESEAT)
    return conclude(ID, findings, f"{seen} DIMMs of {size:g} GiB")


CHECK = Check(id=ID, level=Level.QUICK, collects=(DIMMS,), judge=judge)
