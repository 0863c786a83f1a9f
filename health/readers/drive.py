"""Reads what drives say of themselves: smartctl as JSON or text, nvme smart-log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from health.errors import Unreadable
from health.readers.json_text import number, part, read_object

_NVME_TEXT = {
    "critical warning": "critical_warning",
    "available spare": "available_spare",
    "available spare threshold": "available_spare_threshold",
    "percentage used": "percentage_used",
    "media and data integrity errors": "media_errors",
    "error information log entries": "num_err_log_entries",
    "power cycles": "power_cycles",
    "power on hours": "power_on_hours",
    "data units read": "data_units_read",
    "data units written": "data_units_written",
    "temperature": "temperature",
    "avail_spare": "available_spare",
    "spare_thresh": "available_spare_threshold",
    "percent_used": "percentage_used",
}
_ATTRIBUTE = re.compile(
    r"^\s*(?P<id>\d{1,3}) (?P<name>[\w/-]+)\s+(?:0x\w{4}|[POSRCK-]{6,7})\s+(?P<value>\d{1,3})\s+\d{1,3}\s+"
    r"(?P<thresh>\d{1,3}|---)\s+.*?(?P<failed>-|FAILING_NOW|In_the_past|NOW|Past)\s+(?P<raw>\d+)"
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One ATA attribute; `failed` is "", "now" or "past"."""

    id: int
    name: str
    raw: int
    value: int
    failed: str


@dataclass(frozen=True, slots=True)
class Drive:
    """One drive's health. `passed` None: the drive gave no verdict of its own."""

    name: str
    serial: str
    protocol: str  # nvme, ata, scsi
    passed: bool | None
    exit_status: int = 0
    messages: tuple[str, ...] = ()
    nvme: Mapping[str, float] = field(default_factory=dict)
    attributes: Mapping[int, Attribute] = field(default_factory=dict)
    grown_defects: int | None = None
    uncorrected: int | None = None

    @property
    def identity(self) -> str:
        """Name the drive by its serial where it has one."""
        known = self.serial and self.serial.lower() not in ("redacted", "test serial")
        return f"{self.serial} ({self.name})" if known else self.name


def read_smartctl(text: str) -> Drive:
    """Read `smartctl -j -a` of one drive. Raises Unreadable."""
    document = read_object("smartctl", text)
    if "smartctl" not in document:
        raise Unreadable("smartctl", "it is no output of smartctl")
    messages = part(document, "smartctl", "messages") or []
    log = document.get("nvme_smart_health_information_log")
    scsi = document.get("scsi_error_counter_log")
    return Drive(
        name=str(part(document, "device", "name") or "a drive"),
        serial=str(document.get("serial_number") or ""),
        protocol=str(part(document, "device", "protocol") or "").lower(),
        passed=part(document, "smart_status", "passed"),
        exit_status=int(number(part(document, "smartctl", "exit_status")) or 0),
        messages=tuple(str(part(message, "string")) for message in messages if isinstance(message, dict)),
        nvme=_numbers(log),
        attributes=_attributes(part(document, "ata_smart_attributes", "table")),
        grown_defects=_whole(document.get("scsi_grown_defect_list")),
        uncorrected=_uncorrected(scsi),
    )


def read_smart_log(text: str) -> Drive:
    """Read `nvme smart-log`, as JSON or text. Raises Unreadable."""
    if text.lstrip().startswith("{"):
        document = read_object("nvme smart-log", text)
        values = {_NVME_TEXT.get(key, key): value for key, value in document.items()}
    else:
        values = {}
        for line in text.splitlines():
            label, sign, value = line.partition(":")
            if sign:
                label = label.strip().lower()
                values[_NVME_TEXT.get(label, label)] = value.strip()
    log = _numbers(values)
    if "critical_warning" not in log:
        raise Unreadable("nvme smart-log", "it has no critical_warning")
    name = re.search(r"NVME device:\s*(\w+)", text)
    return Drive(f"/dev/{name[1]}" if name else "an NVMe drive", "", "nvme", None, nvme=log)


def read_smartctl_text(text: str) -> Drive:
    """Read `smartctl -a` as text. Raises Unreadable."""
    labels: dict[str, str] = {}
    for line in text.splitlines():
        label, sign, value = line.partition(":")
        if sign:
            labels.setdefault(label.strip().lower(), value.strip())
    verdict = labels.get("smart overall-health self-assessment test result") or labels.get(
        "smart health status"
    )
    nvme = _numbers({known: labels[label] for label, known in _NVME_TEXT.items() if label in labels})
    attributes = {}
    for line in text.splitlines():
        if found := _ATTRIBUTE.match(line):
            failed = {"FAILING_NOW": "now", "NOW": "now", "In_the_past": "past", "Past": "past"}
            one = Attribute(
                int(found["id"]),
                found["name"],
                int(found["raw"]),
                int(found["value"]),
                failed.get(found["failed"], ""),
            )
            attributes[one.id] = one
    if verdict is None and not nvme.keys() & {"critical_warning"} and not attributes:
        raise Unreadable("smartctl", "it tells no health")
    grown = re.search(r"Elements in grown defect list:\s*(\d+)", text)
    wrong = re.findall(r"^(?:read|write|verify):\s.*?(\d+)\s*$", text, re.MULTILINE)
    return Drive(
        name=_device(text),
        serial=labels.get("serial number", ""),
        protocol="nvme" if nvme else "ata" if attributes else "scsi",
        passed=None if verdict is None else verdict in ("PASSED", "OK"),
        nvme=nvme,
        attributes=attributes,
        grown_defects=int(grown[1]) if grown else None,
        uncorrected=sum(map(int, wrong)) if wrong else None,
    )


def _device(text: str) -> str:
    found = re.search(r"/dev/\w+", text)
    return found[0] if found else "a drive"


def _numbers(log: object) -> dict[str, float]:
    if not isinstance(log, dict):
        return {}
    found = {key: number(value) for key, value in log.items()}
    return {key: value for key, value in found.items() if value is not None}


def _whole(value: object) -> int | None:
    found = number(value)
    return None if found is None else int(found)


def _attributes(table: object) -> dict[int, Attribute]:
    found: dict[int, Attribute] = {}
    for row in table if isinstance(table, list) else []:
        id, raw = _whole(part(row, "id")), _whole(part(row, "raw", "value"))
        if id is not None and raw is not None:
            value = _whole(part(row, "value")) or 0
            name, failed = str(part(row, "name")), str(part(row, "when_failed") or "")
            found[id] = Attribute(id, name, raw, value, failed)
    return found


def _uncorrected(log: object) -> int | None:
    if not isinstance(log, dict):
        return None
    counts = [_whole(part(entry, "total_uncorrected_errors")) for entry in log.values()]
    return sum(count for count in counts if count)
