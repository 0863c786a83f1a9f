"""What UFM's events say, by their codes."""

from __future__ import annotations

import re

from health.outcome import Action, Finding, Status
from health.readers.ufm import UfmEvent, UfmObject

_FAULTS = {110, 112, 329, 331, 394, 702, 907, 917}
_WATCH = {113, 115, 116, 117, 118, 120, 121, 130, 133, 918, 919, 920, 1502, 1503}
_QUIET = {64, 65, 66, 67, 328, 332, 352, 901, 902, 908, 1500}
# What takes back what: link up after link down, node up after node down, switch up after switch down.
_TAKEN_BACK = {329: 328, 331: 332, 907: 908}
_UNWELL = re.compile(r"(?i)\b(?:down|polling|inactive|flapping|unresponsive|noresp\w*|rebooting|unhealthy)\b")


def judge_events(events: tuple[UfmEvent, ...]) -> list[Finding]:
    """Judge events in the order they came; one that was taken back later only warns."""
    findings: dict[tuple[int, str], Finding] = {}
    for position, event in enumerate(events):
        status = _status(event)
        if status is Status.PASS:
            continue
        undo = _TAKEN_BACK.get(event.code)
        subject = _subject(event)
        if undo and any(
            later.code == undo and _subject(later) == subject for later in events[position + 1 :]
        ):
            status = Status.WARN
        action = Action.RESEAT if status is Status.FAIL else Action.INVESTIGATE
        findings[event.code, subject] = Finding(
            "fabric", subject, f"UFM {event.code}: {event.text[:160]}", action, status
        )
    return list(findings.values())


def judge_objects(objects: tuple[UfmObject, ...]) -> list[Finding]:
    """Judge ports, links and systems by UFM's own severity, and by what their state says."""
    findings = []
    for one in objects:
        said = f"{one.name}: {one.state} {one.severity}".strip()
        if one.severity.lower() in ("critical", "minor") or _UNWELL.search(one.state):
            findings.append(Finding("fabric", one.name, said[:160], Action.RESEAT))
        elif one.severity.lower() == "warning":
            findings.append(Finding("fabric", one.name, said[:160], Action.INVESTIGATE, Status.WARN))
    return findings


def _status(event: UfmEvent) -> Status:
    if event.code in _FAULTS or (event.level == "critical" and event.code not in _QUIET | _WATCH):
        return Status.FAIL
    if event.code in _WATCH:
        return Status.WARN
    if event.code in _QUIET or event.level in ("info", ""):
        return Status.PASS
    return Status.WARN


def _subject(event: UfmEvent) -> str:
    link = re.search(
        r"\((?:Switch|Computer):[^)]*\)\S+ - \((?:Switch|Computer):[^)]*\)\S+?(?=,|$)", event.text
    )
    node = re.search(r"Node is (?:down|up): (.+)", event.text)
    return (link[0] if link else node[1] if node else event.where).strip()
