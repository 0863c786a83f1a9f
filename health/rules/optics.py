"""What cables and transceivers say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from health.outcome import Action, Finding, Status
from health.readers.json_text import number
from health.readers.optics import LinkReport, out_of_range

_EFFECTIVE_BER_MAX = 1e-12
_SYMBOL_BER_MAX = 1e-14
_RAW_BER_MAX = 1e-5
# What the tool prints for a rate that is nought.
_NO_BER = 1e-200
_FAULT_FIELDS = (
    "module fw fault",
    "datapath fw fault",
    "tx fault",
    "rx los",
    "rx cdr lol",
    "tx cdr lol",
    "tx los",
)


def judge_link(report: LinkReport) -> list[Finding]:
    """Judge one port as mlxlink sees it. A reading that failed proves nothing, whatever stands in it."""
    if report.failure:
        message = f"mlxlink could not read the port: {report.failure}"
        return [Finding("nic", report.device, message, Action.RERUN)]
    return [*_state(report), *_errors(report), *_module(report)]


def _state(report: LinkReport) -> Iterator[Finding]:
    state = report.fields.get("state", "Active")
    if state not in ("Active", "N/A"):
        physical = report.fields.get("physical state", "")
        yield Finding("nic", report.device, f"the link is {state} ({physical})", Action.RESEAT)
    code = report.fields.get("status opcode", "0")
    if code not in ("0", "N/A", ""):
        said = report.fields.get("recommendation", "no recommendation")
        yield Finding("nic", report.device, f"the adapter recommends: {said}", Action.RESEAT)


def _errors(report: LinkReport) -> Iterator[Finding]:
    for name, most in (
        ("effective physical ber", _EFFECTIVE_BER_MAX),
        ("symbol ber", _SYMBOL_BER_MAX),
        ("raw physical ber", _RAW_BER_MAX),
    ):
        rate = number(report.fields.get(name))
        if rate is not None and rate > most and rate > _NO_BER:
            yield Finding("nic", report.device, f"{name} is {report.fields[name]}", Action.RESEAT)
    downs = number(report.fields.get("link down counter"))
    if downs and downs > 10:
        message = f"the link has gone down {downs:.0f} times"
        yield Finding("nic", report.device, message, Action.INVESTIGATE, Status.WARN)
    recoveries = number(report.fields.get("link error recovery counter"))
    if recoveries and recoveries > 10:
        message = f"{recoveries:.0f} link error recoveries"
        yield Finding("nic", report.device, message, Action.INVESTIGATE, Status.WARN)


def _module(report: LinkReport) -> Iterator[Finding]:
    for name in _FAULT_FIELDS:
        if any(value not in ("0", "N/A") for value in report.values(name)):
            yield Finding("nic", report.device, f"{name}: {report.fields[name]}", Action.RESEAT)
    for name, value in report.fields.items():
        if out_of_range(value):
            yield Finding("nic", report.device, f"{name} out of range: {value}", Action.RESEAT)


def judge_module(fields: dict[str, str]) -> list[Finding]:
    """Judge a transceiver by the alarms that it raises itself."""
    who = fields.get("vendor sn", "transceiver")
    findings = []
    for name, value in fields.items():
        if value.split("[")[0].strip() == "On" and re.search(r"(?:alarm|warning)$|fault|\blos\b", name):
            mild = name.endswith("warning")
            status = Status.WARN if mild else Status.FAIL
            findings.append(Finding("nic", who, f"{name} is on", Action.RESEAT, status))
    return findings
