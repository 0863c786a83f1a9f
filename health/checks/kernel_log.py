"""Has the kernel logged anything that a healthy node never logs?"""

from __future__ import annotations

from health import limits
from health.check import Check, Level
from health.checks.kernel_source import JOURNAL, KMSG, kernel_log
from health.evidence import Evidence
from health.outcome import Outcome, conclude
from health.rules.kernel import judge_lines
from inventory.model import Profile

ID = "kernel.log"


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Judge every line since boot or repair by the deny list, without the rules of `kernel.rules_off`."""
    off = frozenset(limits.optional_words(profile, "kernel.rules_off"))
    log = kernel_log(evidence)
    findings = judge_lines(log.lines, off=off)
    spared = f", {len(off)} rules off" if off else ""
    return conclude(
        ID, [*findings, *log.unproven()], f"{len(log.lines)} lines, none on the deny list{spared}"
    )


CHECK = Check(id=ID, level=Level.QUICK, collects=(KMSG, JOURNAL), judge=judge)
