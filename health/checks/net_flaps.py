"""Have links of this node gone up and down?"""

from __future__ import annotations

from collections.abc import Mapping

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import files
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "net.flaps"
CHANGES = Collect("net.carrier_changes", file="/sys/class/net/*/carrier_changes")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare carrier changes, since the baseline or since boot, with `net.carrier_changes_max` (10)."""
    most = limits.optional_number(profile, "net.carrier_changes_max", 10)
    names = limits.words(profile, "net.interfaces")
    now = _read(files(evidence, CHANGES.id))
    baseline = evidence.context.baseline
    same_boot = baseline is not None and baseline.began.boot_id == evidence.began.boot_id
    before = _read(files(baseline, CHANGES.id)) if baseline and same_boot else {}
    since = "since the last reading" if same_boot else "since boot"
    findings = []
    for name in names:
        if name not in now:
            findings.append(Finding("nic", name, f"interface {name} is missing", Action.RESEAT))
            continue
        changes = now[name] - before.get(name, 0)
        if changes > most:
            findings.append(Finding("nic", name, f"{changes} carrier changes {since}", Action.RESEAT))
    return conclude(ID, findings, f"{len(names)} interfaces steady {since}")


def _read(found: Mapping[str, str]) -> dict[str, int]:
    changes = {}
    for path, text in found.items():
        if not text.strip().isdecimal():
            raise Unreadable(path, f"it says {text.strip()[:20]!r}")
        changes[path.split("/")[4]] = int(text)
    return changes


CHECK = Check(id=ID, level=Level.QUICK, collects=(CHANGES,), judge=judge)
