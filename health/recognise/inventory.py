"""Saved outputs that only list what a host has: drives, CPUs, memory, modules, mounts."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers.json_text import number

_MOUNT = re.compile(
    r"^(/dev/\S+) (?:on )?(/\S*) (?:type )?(?:ext[234]|xfs|btrfs) \(?(\S+?)\)?(?: 0 0)?$", re.MULTILINE
)


def _nvme(text: str) -> list[Finding]:
    if not re.search(r"^/dev/nvme\d+n\d+\s", text, re.MULTILINE):
        return [Finding("disk", "NVMe drives", "no NVMe drive is listed", Action.POWER_CYCLE)]
    return []


def _cpus(text: str) -> list[Finding]:
    if off := re.search(r"^\s*Off-line CPU\(s\) list:\s*(\S+)", text, re.MULTILINE):
        return [Finding("cpu", f"CPU {off[1]}", "CPUs are offline", Action.REBOOT)]
    return []


def _free(text: str) -> list[Finding]:
    row = re.search(r"^Mem:\s+(\S+)", text, re.MULTILINE)
    if not row or not number(row[1]):
        raise Unreadable("free", "it shows no memory")
    return []


def _listed(_: str) -> list[Finding]:
    """Nothing that such a list shows is wrong by itself."""
    return []


def _mounts(text: str) -> list[Finding]:
    local = _MOUNT.findall(text)
    return [
        Finding("disk", f"{device} on {mount}", f"{mount} is mounted read-only", Action.REIMAGE)
        for device, mount, options in local
        if "ro" in options.split(",")
    ]


def _dimms(text: str) -> list[Finding]:
    sizes = re.findall(r"^\s*Size: (.*)$", text, re.MULTILINE)
    if not sizes:
        raise Unreadable("dmidecode", "it shows no memory device")
    if not any(re.match(r"\d", size) for size in sizes):
        return [Finding("memory", "DIMMs", "no memory is installed", Action.RESEAT)]
    return []


def _counters(text: str) -> list[Finding]:
    """Judge what edac-util counts."""
    bad = re.search(r"^(?P<where>mc\d+\S*.*?): (?P<count>[1-9]\d*) Uncorrected", text, re.MULTILINE)
    some = re.search(r"^(?P<where>mc\d+\S*.*?): (?P<count>[1-9]\d*) Corrected", text, re.MULTILINE)
    if bad:
        message = f"{bad['count']} uncorrected memory errors"
        return [Finding("memory", bad["where"], message, Action.VENDOR_TICKET)]
    if some:
        message = f"{some['count']} corrected memory errors"
        return [Finding("memory", some["where"], message, Action.INVESTIGATE, Status.WARN)]
    return []


# What an output says of itself.
FORMS: tuple[tuple[str, Callable[[str], list[Finding]]], ...] = (
    (r"^Node\s+(?:Generic\s+)?SN\s+Model", _nvme),
    (r"^Architecture:\s", _cpus),
    (r"^\s+total\s+used\s+free\s", _free),
    (r"^Module\s+Size\s+Used by", _listed),
    (r"^\S+ (?:on )?/\S* (?:type )?\w+ \(?(?:rw|ro)[,)]", _mounts),
    (r"^Memory Device$", _dimms),
    (r"^mc\d+: .*Errors", _counters),
    (r"^\s*\d\d:\d\d:\d\d up .*load average", _listed),
    (r"^NAME\s+MAJ:MIN", _listed),
)
