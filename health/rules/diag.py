"""What DCGM's results say; a pass that did not test, and a failure of the test's set-up, are neither."""

from __future__ import annotations

import re

from health.outcome import Action, Finding, Status
from health.readers.diag import DiagReport, DiagResult

_NOT_TESTED = re.compile(
    r"(?i)couldn't allocate|could not allocate|unable to allocate|not enough memory|skipp"
)
_BUSY = re.compile(r"(?i)busy or unavailable|in use by|exclusive.process|device\(s\) is/are busy")


def judge_diag(report: DiagReport) -> list[Finding]:
    """Judge a run of `dcgmi diag`."""
    if report.error:
        return [Finding("gpu", "DCGM", f"the diagnostic did not run: {report.error}", Action.RERUN)]
    findings = [finding for result in report.results for finding in _result(result, report)]
    if all(result.status == "skip" for result in report.results):
        findings.append(Finding("gpu", "DCGM", "every test was skipped", Action.RERUN, Status.UNKNOWN))
    return findings


def _result(result: DiagResult, report: DiagReport) -> list[Finding]:
    who = f"GPU {result.gpu}" if result.gpu else "GPUs of this node"
    said = "; ".join(result.said)
    if result.status in ("fail", "warn", "unknown"):
        if result.status == "fail" and _BUSY.search(_near(result, report)):
            message = f"{result.test}: {who} was in use: not tested"
            return [Finding("gpu", who, message, Action.RERUN, Status.UNKNOWN)]
        status = {"fail": Status.FAIL, "warn": Status.WARN}.get(result.status, Status.UNKNOWN)
        action = Action.GPU_RESET if result.status == "fail" else Action.INVESTIGATE
        if re.search(r"(?i)persistence|environment|permission|denylist|blacklist|library", result.test):
            action = Action.REIMAGE
        return [
            Finding("gpu", who, f"{result.test}: {result.status}: {said[:120]}".rstrip(": "), action, status)
        ]
    if result.status == "pass" and _NOT_TESTED.search(said):
        message = f"{result.test} passed without testing: {said[:120]}"
        return [Finding("gpu", who, message, Action.RERUN, Status.UNKNOWN)]
    return []


def _near(result: DiagResult, report: DiagReport) -> str:
    """Return all that was said about this GPU: a table puts the reason beside another test's row."""
    return " ".join(said for other in report.results if other.gpu == result.gpu for said in other.said)


def judge_nvlink_errors(counters: dict[tuple[str, int, str], int]) -> list[Finding]:
    """Judge NVLink error counters of one reading."""
    findings = []
    for (gpu, link, name), count in counters.items():
        if not count:
            continue
        fatal = count >= 10 and "Replay" not in name
        message = f"NVLink {link}: {name} is {count}"
        status = Status.FAIL if fatal else Status.WARN
        findings.append(Finding("nvlink", f"{gpu} link {link}", message, Action.GPU_RESET, status))
    return findings
