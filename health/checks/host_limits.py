"""May processes lock all memory, and open enough files?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import whole
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from health.readers.json_text import only
from health.rules import expect
from inventory.model import Profile

ID = "host.limits"
LIMITS = Collect("host.limits", file="/proc/self/limits")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare the session's own limits with `host.memlock` (unlimited) and `host.open_files_min`."""
    memlock = limits.optional_words(profile, "host.memlock") or ("unlimited",)
    files_min = limits.optional_number(profile, "host.open_files_min", 1024)
    text = whole(evidence, LIMITS.id).text
    if not text.startswith("Limit "):
        raise Unreadable("/proc/self/limits", "it has no heading")
    lock = only("/proc/self/limits", r"^Max locked memory\s+(\S+)\s+(\S+)\s+bytes\s*$", text)
    opened = only("/proc/self/limits", r"^Max open files\s+(\S+)\s+(\S+)\s+files\s*$", text)
    findings = expect.one_of("host", "memlock", lock[1], memlock, "locked memory limit", Action.REIMAGE)
    if opened[2] != "unlimited" and (not opened[2].isdecimal() or int(opened[2]) < files_min):
        message = f"at most {opened[2]} open files; the profile wants {files_min:g}"
        findings.append(Finding("host", "open files", message, Action.REIMAGE))
    return conclude(ID, findings, f"locked memory {lock[1]}, open files {opened[2]}")


CHECK = Check(id=ID, level=Level.QUICK, collects=(LIMITS,), judge=judge)
