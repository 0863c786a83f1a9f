"""What the state of arrays and pools says."""

from __future__ import annotations

import re

from health.outcome import Action, Finding, Status
from health.readers.disk import FileSystem
from health.readers.storage import Array, Device, StatusLine, ZPool

_GOOD_DEVICE = frozenset({"ONLINE", "AVAIL", "INUSE"})
_GOOD_STATUS = re.compile(
    r"(?i)^(?:ok|success|optimal|optl|online|onln|enabled|disabled|good|normal|none|healthy|ready|present|completed|"
    r"initialization completed|not (?:set|applicable|configured|in progress|available)|idle|n/?a|yes|no|0|"
    r"active|inactive|spare|unconfigured.?good|ugood|jbod|dhs|ghs|charged|fully charged|auto\w*|"
    r".*initialized.*)\b"
)
_WARN_STATUS = re.compile(
    r"(?i)rebuild|recharging|charging|degraded learn|predictive|initiali[sz]ing|warning"
)


def judge_pools(pools: tuple[ZPool, ...]) -> list[Finding]:
    """Judge ZFS pools: all online, no error counted, nothing damaged."""
    findings: list[Finding] = []
    for pool in pools:
        before = len(findings)
        for device in pool.devices:
            who = f"{device.name} of {pool.name}"
            if device.state not in _GOOD_DEVICE and not _is_group(device, pool):
                note = f" ({device.note})" if device.note else ""
                findings.append(Finding("disk", who, f"{device.name} is {device.state}{note}", Action.RESEAT))
            elif device.read or device.write:
                message = f"{device.name}: {device.read:.0f} read and {device.write:.0f} write errors"
                findings.append(Finding("disk", who, message, Action.VENDOR_TICKET))
            elif device.checksum:
                message = f"{device.name}: {device.checksum:.0f} checksum errors"
                findings.append(Finding("disk", who, message, Action.INVESTIGATE, Status.WARN))
        if pool.state != "ONLINE" and len(findings) == before:
            findings.append(
                Finding("disk", pool.name, f"pool {pool.name} is {pool.state}", Action.INVESTIGATE)
            )
        if "No known data errors" not in pool.errors:
            message = f"pool {pool.name}: {pool.errors[:80]}"
            findings.append(Finding("disk", pool.name, message, Action.REIMAGE))
        if "resilver" in pool.scan and "in progress" in pool.scan:
            message = f"pool {pool.name} is being rebuilt"
            findings.append(Finding("disk", pool.name, message, Action.RERUN, Status.WARN))
    return findings


def _is_group(device: Device, pool: ZPool) -> bool:
    """Say whether a row only sums up others below it: its state follows from theirs."""
    return (
        device.name == pool.name
        or re.match(r"(?:mirror|raidz\d?|spare|replacing|draid)", device.name) is not None
    )


def judge_arrays(arrays: tuple[Array, ...]) -> list[Finding]:
    """Judge md arrays: all members in, none failed."""
    findings = []
    for array in arrays:
        if array.failed or array.missing or not array.active:
            lost = ", ".join(array.failed) or f"{array.missing} members"
            message = (
                f"{array.name} lacks {lost}"
                if array.failed or array.missing
                else f"{array.name} is not active"
            )
            findings.append(Finding("disk", array.name, message, Action.RESEAT))
        elif array.progress and not array.progress.startswith("check"):
            findings.append(
                Finding("disk", array.name, f"{array.name}: {array.progress}", Action.RERUN, Status.WARN)
            )
    return findings


def judge_statuses(lines: tuple[StatusLine, ...]) -> list[Finding]:
    """Judge a RAID controller's listing: a status in words that no good part has is a fault."""
    findings = []
    for line in lines:
        if _WARN_STATUS.search(line.value):
            status, action = Status.WARN, Action.INVESTIGATE
        elif _GOOD_STATUS.match(line.value):
            continue
        else:
            status, action = Status.FAIL, Action.VENDOR_TICKET
        findings.append(Finding("disk", line.about, f"{line.label}: {line.value}", action, status))
    return findings


def judge_space(
    rows: tuple[FileSystem, ...], what: str, most: float, watch: float | None = None
) -> list[Finding]:
    """Judge how full file systems are, in percent; `watch` is where a warning begins."""
    findings = []
    for row in rows:
        if row.used_percent is None or row.is_image:
            continue
        who = f"{row.device} on {row.mount}"
        message = f"{row.mount} has used {row.used_percent} % of its {what}"
        if row.used_percent >= most:
            findings.append(Finding("disk", who, message, Action.REIMAGE))
        elif watch is not None and row.used_percent >= watch:
            findings.append(Finding("disk", who, message, Action.INVESTIGATE, Status.WARN))
    return findings
