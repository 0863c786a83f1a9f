"""Saved outputs of nvidia-smi."""

from __future__ import annotations

import re

from health.errors import Unreadable
from health.outcome import Finding, Status
from health.readers import smi_csv, smi_messages
from health.readers.smi import read_smi_parts
from health.rules import gpu


def judge(text: str) -> list[Finding]:
    """Judge a report, a table, a list of links or a complaint. Raises Unreadable."""
    messages = smi_messages.read_messages(text)
    if messages and not re.search(r"^\s*Link \d+:", text, re.MULTILINE):
        return gpu.judge_messages(messages)
    if "NVSMI LOG" in text or "<nvidia_smi_log" in text or "Attached GPUs" in text:
        return _report(text)
    if re.search(r"^GPU \d+: .*\(UUID", text, re.MULTILINE):
        return _links(text)
    if smi_csv.is_csv(text):
        return gpu.judge_gpus(smi_csv.read_csv(text))
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


def _links(text: str) -> list[Finding]:
    if "Error" in text:
        return gpu.judge_counters(smi_messages.read_link_counters(text))
    return gpu.judge_links(smi_messages.read_links(text))
