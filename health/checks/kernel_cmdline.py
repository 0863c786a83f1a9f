"""Was the kernel started with the words that the profile needs, and without those it forbids?"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from health import limits
from health.check import Check, Level
from health.checks.kernel_source import JOURNAL, KMSG, kernel_log
from health.checks.sources import CMDLINE, word
from health.errors import Unreadable
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, conclude
from inventory.model import Profile

ID = "kernel.cmdline"
_LOGGED = re.compile(r"^(?:Kernel command line|Command line): ")


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with the lists `kernel.cmdline` and `kernel.cmdline_forbidden`."""
    needed = limits.words(profile, "kernel.cmdline")
    forbidden = limits.optional_words(profile, "kernel.cmdline_forbidden")
    line = word(evidence, CMDLINE.id)
    logged = [one.text.partition(": ")[2] for one in kernel_log(evidence).lines if _LOGGED.match(one.text)]
    if logged and " ".join(logged[0].split()) != " ".join(line.split()):
        raise Unreadable("/proc/cmdline", "the kernel log has another command line")
    words = line.split()
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


CHECK = Check(id=ID, level=Level.QUICK, collects=(CMDLINE, KMSG, JOURNAL), judge=judge)
