"""Saved outputs of the host's own tools: drives, arrays, file systems, services, clock, containers."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers import clock, containers, disk, drive, json_text, service, storage
from health.recognise import inventory, more
from health.rules import clock as clock_rules
from health.rules import containers as container_rules
from health.rules import drive as drive_rules
from health.rules import service as service_rules
from health.rules import storage as storage_rules

_FULL, _FILLING = 95.0, 85.0


def judge(text: str) -> list[Finding]:
    """Judge one output by its own form. Raises Unreadable."""
    text = json_text.plain(text)
    if text.lstrip().startswith(("{", "[")):
        return _json(text)
    for form, judge_form in (*_FORMS, *inventory.FORMS, *more.SYSTEM):
        if re.search(form, text, re.MULTILINE):
            return judge_form(text)
    raise Unreadable("system output", f"it begins {text.strip()[:60]!r}")


def _json(text: str) -> list[Finding]:
    document = json_text.read_json("system output", text)
    if isinstance(document, list):
        document = document[0] if document else {}
    if "smartctl" in document:
        return drive_rules.judge_drive(drive.read_smartctl(text))
    if "critical_warning" in document:
        return drive_rules.judge_drive(drive.read_smart_log(text))
    if "ServerVersion" in document or "DockerRootDir" in document:
        return container_rules.judge_docker(containers.read_docker(text))
    if "blockdevices" in document:
        return _block_devices(document["blockdevices"])
    if "Devices" in document:
        return _nvme_list(document["Devices"])
    raise Unreadable("system output", "its JSON is of no form that is known")


def _block_devices(devices: object) -> list[Finding]:
    if not isinstance(devices, list) or not devices:
        return [Finding("disk", "block devices", "no block device at all", Action.POWER_CYCLE)]
    findings = []
    for one in devices:
        size, kind = json_text.part(one, "size"), json_text.part(one, "type")
        if kind == "disk" and size in (0, "0", "0B"):
            name = str(json_text.part(one, "serial") or json_text.part(one, "name"))
            findings.append(Finding("disk", name, f"{name} has no capacity", Action.RESEAT))
    return findings


def _nvme_list(devices: object) -> list[Finding]:
    if not isinstance(devices, list) or not devices:
        return [Finding("disk", "NVMe drives", "no NVMe drive is listed", Action.POWER_CYCLE)]
    return []


def _smartctl_text(text: str) -> list[Finding]:
    return drive_rules.judge_drive(drive.read_smartctl_text(text))


def _smart_log(text: str) -> list[Finding]:
    return drive_rules.judge_drive(drive.read_smart_log(text))


def _zpool(text: str) -> list[Finding]:
    return storage_rules.judge_pools(storage.read_zpool(text))


def _mdstat(text: str) -> list[Finding]:
    return storage_rules.judge_arrays(storage.read_mdstat(text))


def _raid(text: str) -> list[Finding]:
    return storage_rules.judge_statuses(storage.read_statuses(text))


def _units(text: str) -> list[Finding]:
    return service_rules.judge_units(service.read_units(text, counted=False), allowed=service_rules.NOISY)


def _unit_status(text: str) -> list[Finding]:
    return service_rules.judge_status(service.read_unit_status(text))


def _chrony(text: str) -> list[Finding]:
    return clock_rules.judge_clock(clock.read_chrony(text))


def _timesync(text: str) -> list[Finding]:
    return clock_rules.judge_clock(clock.read_timesync(text))


def _ntpq(text: str) -> list[Finding]:
    return clock_rules.judge_clock(clock.read_ntpq(text))


def _df(text: str) -> list[Finding]:
    rows, complaints = disk.read_df_loose(text)
    findings = storage_rules.judge_space(rows, "space", _FULL, _FILLING)
    return findings + [Finding("disk", mount, f"{mount}: {why}", Action.REBOOT) for mount, why in complaints]


def _docker(text: str) -> list[Finding]:
    return container_rules.judge_docker(containers.read_docker(text))


def _sysctl(text: str) -> list[Finding]:
    lines = [line for line in text.splitlines() if line.strip()]
    odd = [line for line in lines if " = " not in f"{line} " and not line.startswith("sysctl:")]
    if len(odd) > len(lines) / 20:
        raise Unreadable("sysctl", f"line {odd[0][:60]!r}")
    return []


def _denied(text: str) -> list[Finding]:
    line = text.strip().splitlines()[0][:100]
    return [Finding("host", "tool", line, Action.RERUN, Status.UNKNOWN)]


# What an output says of itself, most telling first.
_FORMS: tuple[tuple[str, Callable[[str], list[Finding]]], ...] = (
    (r"^\s*pool: |no pools available", _zpool),
    (r"^Personalities", _mdstat),
    (r"^smartctl \d|SMART Health Status:|SMART overall-health", _smartctl_text),
    (r"^critical_warning\s*:|Smart Log for NVME", _smart_log),
    (r"Smart Array|^\s*Controller Status:|^CLI Version|^(?:Controller|Virtual Drive) ?[=:]", _raid),
    (r"^Leap status\s*:|^506 Cannot talk to daemon", _chrony),
    (r"^\s*(?:Leap|Packet count|System clock synchronized|NTP synchronized): ", _timesync),
    (r"^\s*remote\s+refid", _ntpq),
    (r"^\s+Active: [a-z]+", _unit_status),
    (r"^\s*UNIT\s+LOAD|loaded units listed", _units),
    (r"^Filesystem\s", _df),
    (r"Docker daemon|^ ?Server Version:|^Storage Driver:|^Server:", _docker),
    (r"^[\w.-]+\.[\w.-]+ = ", _sysctl),
    (r"(?i)permission denied|must be root|not permitted", _denied),
)
