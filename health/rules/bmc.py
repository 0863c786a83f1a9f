"""What a BMC's own records say: events, sensors, chassis, inventory."""

from __future__ import annotations

import re
from functools import cache

from health.facts import LineRule, line_rules
from health.outcome import Action, Finding, Status
from health.readers.ipmi import Event, FruDevice, Sensor

_KINDS = (
    ("temp", "temperature"),
    ("fan", "fan"),
    ("volt", "power"),
    ("power", "power"),
    ("psu", "power"),
    ("dimm", "memory"),
    ("memory", "memory"),
    ("cpu", "cpu"),
    ("processor", "cpu"),
    ("gpu", "gpu"),
    ("drive", "disk"),
)
_FAILED_WORDS = re.compile(
    r"(?i)\b(?:fail(?:ed|ure)?|fault|lost|critical|error|non-?recoverable|leak|thermal trip|ierr"
    r"|predictive)\b"
)


def judge_events(events: tuple[Event, ...]) -> list[Finding]:
    """Judge an event log: what still stands fails, what was taken back warns. One finding a subject."""
    still: dict[tuple[str, str], bool] = {}
    for event in events:
        key = (_subject(event.sensor), event.event.lower())
        # A deassertion without its assertion is all that is left of one: history. One from before the BMC
        # knew the time takes nothing back: the BMC has restarted and begins to count anew.
        if event.asserted is not False:
            still[key] = True
        elif event.dated or key not in still:
            still[key] = False
        if event.asserted is not False and re.search(r"(?i)fully redundant|redundancy regained", event.event):
            # A power unit says that it is well again by another event.
            others = [other for other in still if other[0] == key[0] and other != key]
            still.update({other: False for other in others if "redundan" in other[1]})
    findings: dict[tuple[str, str], Finding] = {}
    for event in events:
        key = (_subject(event.sensor), event.event.lower())
        finding = judge_event(event.sensor, event.event, state=event.state)
        if finding is None:
            continue
        if not still[key]:
            if finding.status is Status.WARN:
                continue
            finding = Finding(
                finding.component,
                finding.identity,
                f"{finding.message} (over)",
                Action.INVESTIGATE,
                Status.WARN,
            )
        findings[key] = finding
    return list(findings.values())


def judge_unlisted(events: tuple[Event, ...]) -> list[Finding]:
    """Show that some events are of no kind that the catalogue knows; one finding for all of them."""
    odd = [f"{one.sensor} | {one.event}" for one in events if not _rule(f"{one.sensor} | {one.event}")]
    if not odd:
        return []
    message = f"{len(odd)} events are not in the catalogue, the last: {odd[-1][:80]}"
    return [Finding("bmc", "event log", message, Action.INVESTIGATE, Status.WARN)]


def _rule(subject: str) -> LineRule | None:
    return next((rule for rule in _rules() if rule.match.search(subject)), None)


def _subject(sensor: str) -> str:
    return " ".join(sensor.lower().split())


@cache
def _rules() -> tuple[LineRule, ...]:
    return line_rules("sel")


def judge_event(sensor: str, event: str, *, state: str = "") -> Finding | None:
    """Judge one event by its text, or by the state that a tool has given it; None for no matter."""
    subject = f"{sensor} | {event}"
    names = {"sensor": sensor.strip() or "BMC", "event": event.strip(), "kind": _kind(sensor)}
    rule = _rule(subject)
    if rule and rule.status is not Status.PASS:
        return Finding(
            _fill(rule.component, names),
            _fill(rule.identity, names),
            _fill(rule.message, names)[:160],
            rule.action,
            rule.status,
        )
    if state.lower() in ("critical", "warning"):
        status = Status.FAIL if state.lower() == "critical" else Status.WARN
        message = f"{sensor.strip()}: {event.strip()}"[:160]
        return Finding(names["kind"], names["sensor"], message, Action.INVESTIGATE, status)
    return None


def _kind(sensor: str) -> str:
    lowered = sensor.lower()
    return next((kind for word, kind in _KINDS if word in lowered), "bmc")


def _fill(template: str, names: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda name: names.get(name[1], ""), template)


_STATES = {
    "nc": Status.WARN, "lnc": Status.WARN, "unc": Status.WARN,
    "cr": Status.FAIL, "lcr": Status.FAIL, "ucr": Status.FAIL,
    "nr": Status.FAIL, "lnr": Status.FAIL, "unr": Status.FAIL,
}  # fmt: skip


def judge_sensors(sensors: tuple[Sensor, ...]) -> list[Finding]:
    """Judge sensors by the BMC's own state; one that is absent or disabled is no fault."""
    findings = []
    for one in sensors:
        status = _STATES.get(one.state)
        who = f"{one.name} {one.number}".strip()
        if status:
            message = f"{one.name} is {one.reading or 'out of range'}"
            findings.append(Finding(_kind(one.name), who, message, Action.INVESTIGATE, status))
        elif one.state == "ok" and _FAILED_WORDS.search(one.reading) and "easserted" not in one.reading:
            message = f"{one.name}: {one.reading}"
            findings.append(Finding(_kind(one.name), who, message, Action.INVESTIGATE))
    return findings


_CHASSIS_FAULTS = (
    "power overload",
    "main power fault",
    "power control fault",
    "drive fault",
    "cooling/fan fault",
)


def judge_chassis(fields: dict[str, str]) -> list[Finding]:
    """Judge `chassis status`."""
    findings = [
        Finding("host", "chassis", f"chassis reports {name}", Action.INVESTIGATE)
        for name in _CHASSIS_FAULTS
        if fields.get(name) == "true"
    ]
    if fields.get("chassis intrusion") == "active":
        findings.append(Finding("host", "chassis", "the chassis is open", Action.INVESTIGATE, Status.WARN))
    return findings


def judge_lan(fields: dict[str, str]) -> list[Finding]:
    """Judge `lan print`: cipher suite 0 lets anybody in without a password."""
    suites = re.split(r"\s*,\s*", fields.get("rmcp+ cipher suites", ""))
    privilege = fields.get("cipher suite priv max", "X").split("\n")[0]
    if "0" in suites and privilege[:1] not in ("X", ""):
        message = "cipher suite 0 is allowed: it needs no password"
        return [Finding("bmc", fields.get("ip address", "BMC"), message, Action.INVESTIGATE, Status.WARN)]
    return []


def judge_fru(devices: tuple[FruDevice, ...]) -> list[Finding]:
    """Judge an inventory: each device readable, and somewhere a serial number."""
    findings = [
        Finding("bmc", device.name, f"{device.name}: {device.error}", Action.INVESTIGATE, Status.WARN)
        for device in devices
        if device.error
    ]
    labels = {label.lower() for device in devices for label, value in device.fields.items() if value}
    if not any("serial" in label for label in labels):
        findings.append(
            Finding("bmc", "FRU", "the inventory holds no serial number", Action.INVESTIGATE, Status.WARN)
        )
    return findings
