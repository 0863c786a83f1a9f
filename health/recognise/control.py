"""Saved answers of MAAS and results of Ansible: what they say happened to a machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers.json_text import part, plain, read_json

_TESTS = ("commissioning", "testing", "cpu_test", "memory_test", "storage_test", "network_test", "other_test")
_FATAL = re.compile(
    r"^.*?fatal: \[(?P<host>[^\]]+)\](?:: | -> \S+: )(?P<how>UNREACHABLE|FAILED)! => (?P<rest>.*)$"
)
_RECAP = re.compile(
    r"(?P<host>[\w.:-]+)\s+: ok=\d+\s+changed=\d+\s+unreachable=(?P<dark>\d+)\s+failed=(?P<failed>\d+)"
)
_INSTALL = re.compile(
    r"(?:curtin: Installation failed|grub-install: error: .*|failed to install grub.*|"
    r"finish: .*: FAIL: .*|Unexpected error while running command)"
)


def judge(text: str) -> list[Finding]:
    """Judge one answer, event list, log or result. Raises Unreadable."""
    text = plain(text)
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    if re.search(r"PLAY RECAP|TASK \[|fatal: \[|PLAY \[", text):
        return _ansible_log(text)
    if re.search(r"curtin|grub-install|cmd-install", text):
        return _install_log(text)
    raise Unreadable("MAAS or Ansible output", f"it begins {text.strip()[:60]!r}")


def _json(text: str) -> list[Finding]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(line.startswith("{") for line in lines):
        return _runner_events([_event(line) for line in lines])
    document = read_json("MAAS or Ansible output", text)
    if isinstance(document, list) and document:
        return [found for one in document for found in _resource(one)]
    return _resource(document)


def _event(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise Unreadable("Ansible events", "a line is cut") from exc


def _resource(document: object) -> list[Finding]:
    if not isinstance(document, dict):
        raise Unreadable("MAAS or Ansible output", "its JSON is of no form that is known")
    if "events" in document:
        return _maas_events(document["events"])
    if "stats" in document and "plays" in document:
        return _callback(document)
    if isinstance(document.get("event_data"), dict):
        return _runner_events([document])
    if "results" in document and "status_name" in document:
        return _script_set(document)
    if "status_name" in document or "node_type_name" in document:
        return list(_machine(document))
    raise Unreadable("MAAS or Ansible output", "its JSON is of no form that is known")


def _machine(document: dict[str, object]) -> Iterator[Finding]:
    who = str(document.get("hostname") or document.get("system_id") or "machine")
    status = str(document.get("status_name") or "")
    if status == "Broken" or status.startswith("Failed"):
        why = document.get("error_description") or document.get("status_message") or ""
        yield Finding("machine", who, f"MAAS status is {status} ({why})", Action.INVESTIGATE)
    for test in _TESTS:
        name = str(document.get(f"{test}_status_name") or "")
        if name in ("Failed", "Timed out", "Degraded", "Failed installing", "Failed applying netconf"):
            yield Finding("machine", who, f"{test.replace('_', ' ')} is {name}", Action.INVESTIGATE)
        elif name == "Aborted":
            yield Finding("machine", who, f"{test} was aborted", Action.RERUN, Status.WARN)
    for service in _listed(document.get("service_set")):
        if part(service, "status") in ("dead", "degraded"):
            message = f"service {part(service, 'name')} is {part(service, 'status')}"
            yield Finding("service", who, message, Action.RESTART_SERVICE)
    power = document.get("power_state")
    if power == "error":
        # "error" means that the BMC did not answer; it never means "off".
        yield Finding("bmc", who, "MAAS cannot read the power state", Action.INVESTIGATE)
    elif power == "unknown" and document.get("node_type_name") in ("Machine", None):
        yield Finding("bmc", who, "the power state is unknown", Action.RERUN, Status.WARN)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _script_set(document: dict[str, object]) -> list[Finding]:
    results = document.get("results")
    who = str(document.get("system_id") or "machine")
    findings = []
    for row in results if isinstance(results, list) else ():
        name, state = str(part(row, "name")), str(part(row, "status_name"))
        if part(row, "suppressed") is True:
            continue
        if state in ("Failed", "Timed out", "Degraded", "Failed installing", "Failed applying netconf"):
            message = f"script {name}: {state} (exit {part(row, 'exit_status')})"
            findings.append(Finding("machine", who, message, Action.INVESTIGATE))
        elif state == "Aborted":
            findings.append(Finding("machine", who, f"script {name} was aborted", Action.RERUN, Status.WARN))
    return findings


def _maas_events(events: object) -> list[Finding]:
    """Judge an event list, newest first: an error that a later success followed is history."""
    rows = events if isinstance(events, list) else []
    findings = []
    done = False
    for row in rows:
        kind, level = str(part(row, "type")), str(part(row, "level"))
        who = str(part(row, "hostname") or part(row, "node") or "machine")
        said = " ".join(str(part(row, "description") or "").split())
        if kind in ("Deployed", "Ready", "Commissioned", "Released"):
            done = True
        bad = level in ("ERROR", "CRITICAL") or kind.startswith(("Failed", "Marking node broken"))
        if bad:
            status = Status.WARN if done else Status.FAIL
            findings.append(Finding("machine", who, f"{kind}: {said}"[:160], Action.INVESTIGATE, status))
        elif level == "WARNING":
            findings.append(Finding("machine", who, f"{kind}: {said}"[:160], Action.INVESTIGATE, Status.WARN))
    return findings


def _ansible_log(text: str) -> list[Finding]:
    findings: dict[str, Finding] = {}
    for line in text.splitlines():
        if found := _FATAL.match(line):
            how = "cannot be reached" if found["how"] == "UNREACHABLE" else "failed a task"
            why = re.search(r'"msg": "((?:[^"\\]|\\.)*)"', found["rest"])
            message = f"{found['host']} {how}: {why[1] if why else found['rest']}"[:160]
            ignored = "...ignoring" in text.partition(line)[2][:40]
            status = Status.WARN if ignored else Status.FAIL
            findings.setdefault(
                found["host"], Finding("play", found["host"], message, Action.INVESTIGATE, status)
            )
    for found in _RECAP.finditer(text):
        if int(found["dark"]) or int(found["failed"]):
            what = "cannot be reached" if int(found["dark"]) else "failed"
            message = f"{found['host']} {what} (recap)"
            findings.setdefault(found["host"], Finding("play", found["host"], message, Action.INVESTIGATE))
    return list(findings.values())


def _runner_events(events: Iterable[object]) -> list[Finding]:
    """Judge ansible-runner's events: the stats hide failures that were told to be ignored."""
    findings: dict[str, Finding] = {}
    for event in events:
        kind, data = part(event, "event"), part(event, "event_data")
        host = str(part(data, "host") or "")
        if kind in ("runner_on_unreachable", "runner_on_failed"):
            how = "cannot be reached" if kind == "runner_on_unreachable" else f"failed {part(data, 'task')}"
            said = part(data, "res", "stderr") or part(data, "res", "msg") or ""
            message = f"{host} {how}: {said}"[:160]
            findings.setdefault(host, Finding("play", host, message, Action.INVESTIGATE))
        elif kind == "playbook_on_stats":
            for group in ("dark", "failures"):
                for name in part(data, group) or ():
                    findings.setdefault(
                        str(name), Finding("play", str(name), f"{name}: {group}", Action.INVESTIGATE)
                    )
    return list(findings.values())


def _callback(document: dict[str, object]) -> list[Finding]:
    findings: dict[str, Finding] = {}
    for play in document["plays"] if isinstance(document["plays"], list) else ():
        for task in part(play, "tasks") or ():
            for host, result in (part(task, "hosts") or {}).items():
                if part(result, "failed") is True or part(result, "unreachable") is True:
                    said = part(result, "stderr") or part(result, "msg") or ""
                    last = str(said).strip().splitlines()[-1:] or [""]
                    message = f"{host} failed {part(task, 'task', 'name')}: {last[0]}"[:160]
                    findings.setdefault(host, Finding("play", host, message, Action.INVESTIGATE))
    for host, counts in (part(document, "stats") or {}).items():
        if part(counts, "failures") or part(counts, "unreachable"):
            findings.setdefault(host, Finding("play", host, f"{host} failed", Action.INVESTIGATE))
    return list(findings.values())


def _install_log(text: str) -> list[Finding]:
    found = [hit[0].strip() for hit in _INSTALL.finditer(text)]
    if not found:
        return []
    # The tool's own error says more than the installer's summary of it.
    telling = next((line for line in found if "grub-install: error" in line), found[0])
    return [Finding("machine", "installation", telling[:160], Action.INVESTIGATE)]
