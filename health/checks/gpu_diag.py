"""Do NVIDIA's own diagnostics pass on every GPU?"""

from __future__ import annotations

from health import limits
from health.check import Check, Collect, Level
from health.checks.sources import ended
from health.errors import NotCollected
from health.evidence import Evidence
from health.outcome import Action, Finding, Outcome, Status, conclude
from health.readers.diag import read_diag
from health.rules.diag import judge_diag
from inventory.model import Profile

ID = "gpu.diag"
DIAG = Collect(
    "gpu.diag",
    argv=("dcgmi", "diag", "-r", "${gpu.diag_level}", "-j"),
    timeout_s=3600,
    limit_bytes=4_194_304,
    alone=True,
)


def judge(evidence: Evidence, profile: Profile) -> Outcome:
    """Run `dcgmi diag` at the level `gpu.diag_level` and judge every test on every GPU."""
    limits.number(profile, "gpu.diag_level")
    item = ended(evidence, DIAG.id, *range(256))
    if item.rc and not item.text.strip():
        raise NotCollected(DIAG.id, item.problem or "dcgmi said nothing")
    report = read_diag(item.text)
    findings = judge_diag(report)
    if item.rc and not findings:
        message = f"dcgmi ended with {item.rc}, and no result says why"
        findings = [Finding("gpu", "GPUs of this node", message, Action.RERUN, Status.UNKNOWN)]
    return conclude(ID, findings, f"{len(report.results)} results, none bad")


CHECK = Check(id=ID, level=Level.FULL, collects=(DIAG,), judge=judge)
