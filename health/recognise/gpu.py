"""Saved outputs of nvidia-smi."""

from __future__ import annotations

import re

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers import smi_csv, smi_messages
from health.readers.smi import read_smi_parts
from health.rules import gpu

_INSTANCE = re.compile(r"^[ \t]+MIG .*Device +\d+: \(UUID: MIG-[^)]*\)[ \t\r]*\n?", re.MULTILINE)


def judge(text: str) -> list[Finding]:
    """Judge a report, a table, a list of links or a complaint. Raises Unreadable."""
    messages = smi_messages.read_messages(text)
    if messages and not re.search(r"^\s*Link \d+:", text, re.MULTILINE):
        return gpu.judge_messages(messages)
    if "NVSMI LOG" in text or "<nvidia_smi_log" in text or "Attached GPUs" in text:
        return _report(text)
    if re.search(r"^GPU \d+: .*\(UUID", text, re.MULTILINE):
        return _links(text)
    if smi_csv.is_csv(text) or re.match(r"#\s*gpu\s", text.lstrip()):
        return _query(text)
    if re.search(r"^\s*(?:\x1b\[\S*?m)?GPU0\s", text):
        return gpu.judge_topology(smi_messages.read_topology(text))
    if "|" in text:
        return gpu.judge_table(smi_messages.read_table(text))
    raise Unreadable("nvidia-smi", f"it begins {text.strip()[:60]!r}")


def _report(text: str) -> list[Finding]:
    report = read_smi_parts(text)
    findings = gpu.judge_report(report)
    # XML of one GPU of several is whole: `-i` asks for it, and the count is still that of all.
    partial = "<nvidia_smi_log" in text and not report.cut
    if report.flaw and not partial and not any(finding.status is Status.FAIL for finding in findings):
        raise Unreadable("nvidia-smi -q", report.flaw)
    return findings


def _query(text: str) -> list[Finding]:
    """Judge a query: of GPUs, of retired pages, or of what runs on them."""
    if text.lstrip().startswith("#"):
        return []  # `dmon` and `pmon`: readings, with nothing beside them to compare with
    if re.match(r"\s*(?:gpu_\w+, )*(?:retired_pages\.|pid|process_name)", text) and not text.strip().count(
        "\n"
    ):
        return []  # none is retired, nothing runs
    gpus = smi_csv.read_csv(text)
    retired = {
        one.address: one.fields["retired_pages.cause"] for one in gpus if "retired_pages.cause" in one.fields
    }
    return gpu.judge_gpus(gpus) + [
        Finding("gpu", who, f"a page was retired: {cause}", Action.VENDOR_TICKET)
        if "double" in cause.lower()
        else Finding("gpu", who, f"a page was retired: {cause}", Action.INVESTIGATE, Status.WARN)
        for who, cause in retired.items()
    ]


def _links(text: str) -> list[Finding]:
    # A GPU that is cut into instances lists them under it.
    text = _INSTANCE.sub("", text)
    if "Error" in text:
        return gpu.judge_counters(smi_messages.read_link_counters(text))
    return gpu.judge_links(smi_messages.read_links(text))
