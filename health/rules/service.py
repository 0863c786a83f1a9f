"""What the state of services says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from health.outcome import Action, Finding, Status
from health.readers.service import Unit

# Fails on every node with a port that is not cabled.
NOISY = ("systemd-networkd-wait-online.service", "NetworkManager-wait-online.service")
_VERSIONS = re.compile(r"(\d{3}\.\d+(?:\.\d+)?)\D.*?\b(\d{3}\.\d+(?:\.\d+)?)\b")


def judge_units(units: Iterable[Unit], allowed: tuple[str, ...] = ()) -> list[Finding]:
    """Judge a list of units: none failed but for those that are allowed to, which warn."""
    findings = []
    for unit in units:
        if unit.active != "failed":
            continue
        mild = any(fnmatchcase(unit.name, pattern) for pattern in allowed)
        status = Status.WARN if mild else Status.FAIL
        message = f"{unit.name} failed ({unit.about or unit.sub})"
        findings.append(Finding("service", unit.name, message, Action.RESTART_SERVICE, status))
    return findings


def judge_status(units: Iterable[Unit]) -> list[Finding]:
    """Judge units that must run: what is not active is wrong, with the versions that it quarrels over."""
    findings = []
    for unit in units:
        if unit.active == "active" and unit.sub in ("running", "exited", "mounted", "listening"):
            continue
        if unit.active == "inactive":
            message, status = f"{unit.name} does not run", Status.FAIL
        else:
            message, status = f"{unit.name} is {unit.active} ({unit.sub})", Status.FAIL
        action = Action.RESTART_SERVICE
        if quarrel := version_quarrel(unit.text):
            message, action = f"{message}: version {quarrel[0]} does not fit {quarrel[1]}", Action.REIMAGE
        findings.append(Finding("service", unit.name, message, action, status))
    return findings


def version_quarrel(text: str) -> tuple[str, str] | None:
    """Return two driver versions that a line says do not fit, whatever its wording."""
    for line in text.splitlines():
        if re.search(r"(?i)match|mismatch|version", line):
            found = _VERSIONS.search(line)
            if found and found[1] != found[2]:
                return found[1], found[2]
    return None
