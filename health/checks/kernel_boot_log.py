"""Did the boot say what every boot of its kind says, all of it, in order, and nothing else?"""

from __future__ import annotations

from health.bootlog.anomalies import Anomaly, find_anomalies, is_enough
from health.bootlog.boot import Boot, cohort_of, read_boot
from health.bootlog.triage import Decision
from health.check import Check, Level
from health.checks.kernel_source import JOURNAL, KMSG, whole_log
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude, unknown
from inventory.model import Profile

ID = "kernel.boot_log"
_SHOWN = 20


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Compare with what was learned of the cohort's boots; what an operator has decided stands."""
    boot = boot_of(evidence, "this node")
    if boot.gap is not None:
        return unknown(ID, "kernel", f"the boot log is not whole: {boot.gap}", Action.REBOOT)
    model = evidence.context.boots
    cohort = cohort_of(profile.name, boot)
    if model is None or model.cohort != cohort or not is_enough(model):
        seen = f"{model.boots} boots of {model.nodes} nodes" if model and model.cohort == cohort else "none"
        return unknown(ID, "kernel", f"too few boots are known of {cohort.name}: {seen}", Action.NONE)
    now = evidence.context.collected_at or evidence.began.wall_clock
    found = [(one, evidence.context.triage.of(one, now)) for one in find_anomalies(model, boot)]
    open_ = [_finding(one, decided) for one, decided in found if decided in (Decision.OPEN, Decision.DENIED)]
    worst = sorted(open_, key=lambda finding: finding.status is not Status.FAIL)
    return conclude(ID, worst[:_SHOWN], f"{len(boot.lines)} lines as in {model.boots} boots before")


def boot_of(evidence: Evidence, node: str) -> Boot:
    """Return the boot that evidence tells of. Raises NotCollected where there is no log."""
    log = whole_log(evidence)
    return read_boot(node, log.lines, log.gap)


def _finding(one: Anomaly, decided: Decision) -> Finding:
    status = Status.FAIL if decided is Decision.DENIED else Status.WARN
    message = f"{one.oddity}: {one.line[:100]} ({one.said[:100]})"
    return Finding("kernel", f"card {one.id}", message, Action.INVESTIGATE, status)


# In shadow until a site has learned its boots, and trusts what it learned.
CHECK = Check(id=ID, level=Level.QUICK, collects=(KMSG, JOURNAL), judge=judge, gates=False)
