"""Was the kernel started with the words that the profile needs, and without those it forbids?"""

from __future__ import annotations

from fnmatch import fnmatchcase

from health import limits
from health.check import Check, Level
from health.checks.sources import CMDLINE, word
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "kernel.cmdline"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the lists `kernel.cmdline` and `kernel.cmdline_forbidden`."""
    needed = limits.words(profile, "kernel.cmdline")
    forbidden = limits.optional_words(profile, "kernel.cmdline_forbidden")
    words = word(evidence, CMDLINE.id).split()
    findings = [
        Finding("kernel", "command line", f"{one} is not on the command line", Action.REIMAGE)
        for one in needed
        if one not in words
    ]
    findings += [
        Finding("kernel", "command line", f"{one} is on the command line", Action.REIMAGE)
        for one in words
        if any(fnmatchcase(one, pattern) for pattern in forbidden)
    ]
    return conclude(ID, findings, f"{len(words)} words, all as wanted")


CHECK = Check(id=ID, level=Level.QUICK, collects=(CMDLINE,), judge=judge)
