"""Saved outputs of load tests and of the services around them: DCGM, NCCL, perftest, fabric manager."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers import benchmark, diag
from health.readers.json_text import part, plain, read_json
from health.recognise import more
from health.rules import benchmark as benchmark_rules
from health.rules import diag as diag_rules

_NCCL_TROUBLE = re.compile(
    r"NCCL WARN .*(?:Got completion|[Ff]ailed|[Tt]imed? ?out|[Ee]rror|mismatch|[Aa]bort)"
    r"|Watchdog caught collective operation timeout|ncclSystemError|ncclRemoteError|ncclInternalError"
    r"|unhandled (?:system|cuda) error|Cuda failure|CUDA error|NCCL error|Timeout at NCCL work"
)
_COMPLETION = re.compile(
    r"Got completion from peer (?P<peer>[\d.]+)\S* with status=(?P<status>\d+).*?vendor err (?P<vendor>\d+)"
    r"(?:.*?hca (?P<hca>\S+))?"
)


def judge(text: str) -> list[Finding]:
    """Judge one output by its own form. Raises Unreadable."""
    text = plain(text)
    if text.lstrip().startswith("{"):
        return _json(text)
    for form, judge_form in (*_FORMS[:-1], *more.LOAD, _FORMS[-1]):
        if re.search(form, text, re.MULTILINE):
            return judge_form(text)
    raise Unreadable("load test", f"it begins {text.strip()[:60]!r}")


def _json(text: str) -> list[Finding]:
    document = read_json("DCGM output", text)
    if "body" in document and "Link 0" in (document["body"] or {}):
        return diag_rules.judge_nvlink_errors(diag.read_nvlink_errors(text))
    if "body" in document:
        return _health(document)
    return diag_rules.judge_diag(diag.read_diag(text))


def _health(document: object) -> list[Finding]:
    """Judge `dcgmi health -c -j`."""
    overall = str(part(document, "body", "Overall Health", "value") or "")
    if overall.lower().startswith("healthy"):
        return []
    if not overall:
        raise Unreadable("dcgmi", "its JSON is of no form that is known")
    status = Status.WARN if overall.lower().startswith("warn") else Status.FAIL
    return [Finding("gpu", "DCGM", f"overall health is {overall}", Action.INVESTIGATE, status)]


def _health_table(text: str) -> list[Finding]:
    """Judge `dcgmi health -c`: the parts it names as unwell."""
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in text.splitlines() if "|" in line]
    rows = [row for row in rows if len(row) == 2]
    overall = next(row[1] for row in rows if row[0] == "Overall Health")
    if not overall:
        raise Unreadable("dcgmi health", "it does not say how the node is")
    if overall.lower() == "healthy":
        return []
    gpu = next((row[0].removeprefix("->").strip() for row in rows if re.match(r"-> \d+$", row[0])), "DCGM")
    said = " ".join(row[1] for row in rows if not row[0] and row[1])
    status = Status.WARN if overall.lower().startswith("warn") else Status.FAIL
    message = f"overall health is {overall}: {said}"[:160]
    return [Finding("gpu", f"GPU {gpu}", message, Action.INVESTIGATE, status)]


def _nccl(text: str) -> list[Finding]:
    """Name the first trouble: what follows within seconds is the same, seen from other ranks."""
    for line in text.splitlines():
        if completion := _COMPLETION.search(line):
            who = completion["hca"] or "an adapter"
            message = (
                f"transfer to {completion['peer']} failed on {who} (status {completion['status']}, "
                f"vendor error {completion['vendor']}): link or peer, not the GPU"
            )
            return [Finding("nic", who, message, Action.INVESTIGATE)]
    for line in text.splitlines():
        if found := _NCCL_TROUBLE.search(line):
            node = line.split(":", 1)[0].strip()[:40]
            return [Finding("collective", node, found[0][:160], Action.INVESTIGATE)]
    return []


def _burn(text: str) -> list[Finding]:
    wrong = re.search(r"errors: (?!0\b)\d+.*WARNING", text)
    findings = benchmark_rules.judge_burn(benchmark.read_burn(text))
    if wrong and not findings:
        findings = [Finding("gpu", "GPUs under test", wrong[0][:120], Action.VENDOR_TICKET)]
    return findings


def _fabric_manager(text: str) -> list[Finding]:
    findings = []
    for line in re.findall(r"^\[[^\]]*\] \[(?:ERROR|CRITICAL|FATAL)\].*", text, re.MULTILINE):
        mild = re.search(r"non-?fatal", line, re.IGNORECASE)
        said = re.sub(r"^(?:\[[^\]]*\] )+", "", line)[:160]
        where = re.search(r"pci bus id ([0-9a-fA-F:.]+)", line)
        status = Status.WARN if mild else Status.FAIL
        action = Action.INVESTIGATE if mild else Action.RESTART_SERVICE
        findings.append(Finding("nvswitch", where[1] if where else "fabric manager", said, action, status))
    return findings


def _diag(text: str) -> list[Finding]:
    return diag_rules.judge_diag(diag.read_diag(text))


def _collectives(text: str) -> list[Finding]:
    return benchmark_rules.judge_collectives(benchmark.read_collectives(text)) + _nccl(text)


def _transfers(text: str) -> list[Finding]:
    return benchmark_rules.judge_transfers(benchmark.read_transfers(text))


# What an output says of itself, most telling first.
_FORMS: tuple[tuple[str, Callable[[str], list[Finding]]], ...] = (
    (r"\|\s*Diagnostic\s*\|", _diag),
    (r"^\|\s*Overall Health\s*\|", _health_table),
    (r"^# nThread|^# Collective test starting|Test NCCL failure", _collectives),
    (r"NCCL (?:WARN|INFO)|Watchdog caught|ProcessGroupNCCL", _nccl),
    (r"Tested \d+ GPUs|using (?:DOUBLES|FLOATS)|errors: \d+", _burn),
    (r"(?:RDMA_Write|Send|RDMA_Read|Write|Read) (?:BW|Bidirectional BW) Test|BW average", _transfers),
    (r"^\[\w{3} \d\d \d{4} [\d:]+\] \[\w+\]", _fabric_manager),
    (r"(?i)dcgm", _diag),
)
