"""What Redfish answers say: what is in use and unwell, what the logs hold, what the metrics count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from health.outcome import Action, Finding, Status
from health.readers.json_text import number, part
from health.readers.redfish import LogEntry, error_of, log_entries, measures, states
from health.rules.bmc import judge_event

_HEALTH = {"Critical": Status.FAIL, "Warning": Status.WARN}
_OPEN_CHASSIS = re.compile(r"(?i)intrusion|chassis.*(?:open|hood|removed)|hood was removed")
_RESTORED = re.compile(
    r"(?i)restored|returned to (?:normal|a normal)|is (?:now )?(?:ok|normal)|cleared|within range"
)


def judge_resource(document: Mapping[str, object]) -> list[Finding]:
    """Judge one answer, whatever it is. An error body says nothing about the node."""
    if found := error_of(document):
        message = f"the BMC answered {found[0]}: {found[1]}"[:160]
        return [Finding("bmc", "BMC", message, Action.RERUN, Status.UNKNOWN)]
    entries = log_entries(document)
    if entries is not None:
        return judge_log(entries)
    findings = [*_states(document), *_leaks(document), *_metrics(document), *_drives(document)]
    known = {finding.identity for finding in findings}
    for one in measures(document):
        if one.name not in known:
            message = f"{one.name} reads {one.reading:g}; its limit is {one.limit:g}"
            findings.append(Finding("bmc", one.name, message, Action.INVESTIGATE))
    return findings


def _states(document: Mapping[str, object]) -> Iterator[Finding]:
    for one in states(document):
        status = _HEALTH.get(one.health)
        if one.in_use and status:
            message = f"{one.name} is {one.health.lower()} ({one.state or 'no state'})"
            yield Finding("bmc", one.name, message, Action.INVESTIGATE, status)
        elif one.state == "UnavailableOffline":
            yield Finding("bmc", one.name, f"{one.name} is offline", Action.INVESTIGATE)


def _leaks(document: Mapping[str, object]) -> Iterator[Finding]:
    state = document.get("DetectorState")
    if state is not None and state not in ("OK", "Unavailable", "Absent"):
        name = str(document.get("Name") or document.get("Id"))
        yield Finding("cooling", name, f"{name}: {state}", Action.POWER_CYCLE)


def _drives(document: Mapping[str, object]) -> Iterator[Finding]:
    name = str(document.get("SerialNumber") or document.get("Name") or "drive")
    if document.get("FailurePredicted") is True:
        yield Finding("disk", name, f"{name} predicts its own failure", Action.VENDOR_TICKET)
    left = number(document.get("PredictedMediaLifeLeftPercent"))
    if left is not None and left <= 10:
        status = Status.WARN if left else Status.FAIL
        yield Finding("disk", name, f"{name} has {left:.0f} % of its life left", Action.VENDOR_TICKET, status)


def _metrics(document: Mapping[str, object]) -> Iterator[Finding]:
    name = str(document.get("Name") or "processor")
    counts = (
        (
            part(document, "CacheMetricsTotal", "LifeTime", "UncorrectableECCErrorCount"),
            "uncorrected ECC errors",
        ),
        (part(document, "CurrentPeriod", "UncorrectableECCErrorCount"), "uncorrected ECC errors"),
        (part(document, "PCIeErrors", "FatalErrorCount"), "fatal PCIe errors"),
        (part(document, "PCIeErrors", "NonFatalErrorCount"), "non-fatal PCIe errors"),
    )
    for value, what in counts:
        count = number(value)
        if count:
            mild = what.startswith("non-fatal")
            status = Status.WARN if mild else Status.FAIL
            yield Finding("gpu", name, f"{name}: {count:.0f} {what}", Action.INVESTIGATE, status)
    oem = part(document, "Oem", "Nvidia")
    if part(oem, "SRAMECCErrorThresholdExceeded") is True:
        yield Finding("gpu", name, f"{name}: SRAM errors past the threshold", Action.VENDOR_TICKET)
    reasons = part(oem, "ThrottleReasons") or ()
    hard = [reason for reason in reasons if re.search(r"(?i)hw|hardware|thermal|brake", str(reason))]
    if hard:
        yield Finding("gpu", name, f"{name} is slowed down: {', '.join(hard)}", Action.INVESTIGATE)


def judge_log(entries: tuple[LogEntry, ...]) -> list[Finding]:
    """Judge a log: what is not repaired, one finding a message."""
    findings: dict[str, Finding] = {}
    restored = [
        entry for entry in entries if _RESTORED.search(entry.message) and entry.severity in ("OK", "")
    ]
    for entry in entries:
        status = _status(entry)
        if status is Status.PASS or entry.repaired:
            continue
        if _OPEN_CHASSIS.search(entry.message):
            status = Status.WARN
        if status is Status.FAIL and any(_takes_back(later, entry) for later in restored):
            status = Status.WARN
        message = f"{entry.message[:140]} (entry {entry.id})"
        known = findings.get(entry.message)
        if known is None or known.status is Status.WARN:
            findings[entry.message] = Finding(
                "bmc", entry.sensor or "BMC log", message, Action.INVESTIGATE, status
            )
    return list(findings.values())


def _status(entry: LogEntry) -> Status:
    if entry.asserted is False:
        return Status.PASS
    if entry.severity in _HEALTH:
        return _HEALTH[entry.severity]
    if entry.severity:
        return Status.PASS
    # Some firmware gives no severity: the text is all there is.
    finding = judge_event(entry.sensor, entry.message)
    return finding.status if finding else Status.PASS


def _takes_back(later: LogEntry, entry: LogEntry) -> bool:
    if later.created <= entry.created:
        return False
    mine = set(re.findall(r"[a-z0-9]{3,}", entry.message.lower()))
    other = set(re.findall(r"[a-z0-9]{3,}", later.message.lower()))
    return bool(mine) and len(mine & other) >= len(mine) / 2
