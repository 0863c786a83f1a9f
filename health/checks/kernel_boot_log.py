"""Did the boot say what every boot of its kind says, all of it, in order, and nothing else?"""

from __future__ import annotations

from dataclasses import replace

from health.bootlog.anomalies import Anomaly, find_anomalies, is_enough
from health.bootlog.boot import Boot, Witness, cohort_of, read_boot
from health.bootlog.console import read_console
from health.bootlog.triage import Decision
from health.check import Check, Level
from health.checks.kernel_source import JOURNAL, KMSG, KernelLog, whole_log
from health.errors import NotCollected
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude, unknown
from health.readers.kernel import KernelLine
from health.rules.kernel import judge_lines
from health.rules.xid import events, judge_events
from inventory.model import Profile

ID = "kernel.boot_log"
_SHOWN = 20


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with what was learned of the cohort's boots; what an operator has decided stands."""
    boot, witness = seen_boot(evidence, "this node")
    faults = _faults(boot) if witness is Witness.CONSOLE else []
    if any(finding.status is Status.FAIL for finding in faults):
        return conclude(ID, faults, "")
    if boot.gap is not None:
        return unknown(ID, "kernel", f"the boot log is not whole: {boot.gap}", Action.REBOOT)
    model = evidence.context.boots
    cohort = cohort_of(profile.name, boot, witness)
    if model is None or model.cohort != cohort or not is_enough(model):
        seen = f"{model.boots} boots of {model.nodes} nodes" if model and model.cohort == cohort else "none"
        return unknown(ID, "kernel", f"too few boots are known of {cohort.name}: {seen}", Action.NONE)
    now = evidence.context.collected_at or evidence.began.wall_clock
    found = [(one, evidence.context.triage.of(one, now)) for one in find_anomalies(model, boot)]
    open_ = [_finding(one, decided) for one, decided in found if decided in (Decision.OPEN, Decision.DENIED)]
    worst = sorted([*faults, *open_], key=lambda finding: finding.status is not Status.FAIL)
    return conclude(ID, worst[:_SHOWN], f"{len(boot.lines)} lines as in {model.boots} boots before")


def seen_boot(evidence: Evidence, node: str) -> tuple[Boot, Witness]:
    """Return the boot that evidence tells of, and where it was read.

    The kernel's ring and journal come first; the console stands in where they are not whole and it is.
    Raises NotCollected where there is neither.
    """
    console = evidence.context.console
    try:
        log = whole_log(evidence)
    except NotCollected as exc:
        if console is None:
            raise
        log = KernelLog((), str(exc))
    boot = read_boot(node, log.lines, log.gap)
    if log.gap is None or console is None:
        return boot, Witness.RING
    seen = read_console(console)
    if seen.gap is not None:
        return replace(boot, gap=f"{log.gap}; and {seen.gap}"), Witness.RING
    if not seen.is_boot_of(evidence.began.boot_time):
        return replace(boot, gap=f"{log.gap}; and the console is not proven to show this boot"), Witness.RING
    return read_boot(node, seen.lines), Witness.CONSOLE


def _faults(boot: Boot) -> list[Finding]:
    """Judge by the deny list what a console alone has seen; kernel.log does so for the ring."""
    lines = tuple(KernelLine(text) for text in boot.faults)
    return [*judge_lines(lines), *judge_events(events(lines))]


def _finding(one: Anomaly, decided: Decision) -> Finding:
    status = Status.FAIL if decided is Decision.DENIED else Status.WARN
    message = f"{one.oddity}: {one.line[:100]} ({one.said[:100]})"
    return Finding("kernel", f"card {one.id}", message, Action.INVESTIGATE, status)


# In shadow until a site has learned its boots, and trusts what it learned.
CHECK = Check(id=ID, level=Level.QUICK, collects=(KMSG, JOURNAL), judge=judge, gates=False)
