"""What a drive's own figures say about it."""

from __future__ import annotations

from collections.abc import Iterator

from health.outcome import Action, Finding, Status
from health.readers.drive import Drive

# smartctl's exit bits.
_COMMAND_LINE, _OPEN, _COMMAND, _FAILING, _PREFAIL, _PREFAIL_PAST, _ERROR_LOG, _SELF_TEST = (
    1 << bit for bit in range(8)
)
WEAR_WARN = 70
_REALLOCATED_MAX = 50
_CRC_MAX = 1000


def judge_drive(drive: Drive, *, wear_warn: float = WEAR_WARN) -> list[Finding]:
    """Return what is wrong with one drive."""
    findings = [*_status(drive), *_nvme(drive, wear_warn), *_ata(drive), *_scsi(drive)]
    told = drive.nvme or drive.attributes or drive.grown_defects is not None or drive.passed is not None
    if not told and not findings:
        findings = [_finding(drive, "it tells nothing about its health", Action.RESEAT)]
    return findings


def _finding(drive: Drive, message: str, action: Action, status: Status = Status.FAIL) -> Finding:
    return Finding("disk", drive.identity, f"{drive.name}: {message}", action, status)


def _status(drive: Drive) -> Iterator[Finding]:
    code = drive.exit_status
    if drive.passed is False or code & _FAILING:
        yield _finding(drive, "the drive itself says that it is failing", Action.VENDOR_TICKET)
    if code & (_COMMAND_LINE | _OPEN):
        yield _finding(drive, "it could not be opened", Action.RESEAT)
    if code & _COMMAND:
        blind = drive.passed is None or (drive.protocol == "nvme" and not drive.nvme)
        said = drive.messages[0] if drive.messages else "a SMART command failed"
        status = Status.FAIL if blind else Status.WARN
        yield _finding(drive, said, Action.RESEAT if blind else Action.INVESTIGATE, status)
    if code & _PREFAIL:
        yield _finding(drive, "a prefailure attribute is at its threshold", Action.VENDOR_TICKET)
    if code & _SELF_TEST:
        yield _finding(drive, "a self-test ended with errors", Action.INVESTIGATE, Status.WARN)
    if code & (_PREFAIL_PAST | _ERROR_LOG) and not code & _PREFAIL:
        yield _finding(
            drive, "it has errors in its log or a bad attribute in its past", Action.INVESTIGATE, Status.WARN
        )


def _nvme(drive: Drive, wear_warn: float) -> Iterator[Finding]:
    log = drive.nvme
    if not log:
        return
    if warning := int(log.get("critical_warning", 0)):
        yield _finding(drive, f"critical warning 0x{warning:02x}", Action.VENDOR_TICKET)
    spare, threshold = log.get("available_spare"), log.get("available_spare_threshold")
    if spare is not None and spare <= (threshold or 0):
        yield _finding(drive, f"{spare:.0f} % of its spare is left", Action.VENDOR_TICKET)
    if errors := log.get("media_errors"):
        yield _finding(drive, f"{errors:.0f} media errors", Action.VENDOR_TICKET)
    used = log.get("percentage_used", 0)
    if used >= 100:
        yield _finding(drive, f"worn out ({used:.0f} % used)", Action.VENDOR_TICKET)
    elif used >= wear_warn:
        yield _finding(drive, f"{used:.0f} % of its life is used", Action.INVESTIGATE, Status.WARN)
    hours, cycles = log.get("power_on_hours"), log.get("power_cycles")
    if hours is not None and cycles is not None and hours > 24 and cycles == 0:
        message = "its counters contradict each other: hours without a power cycle"
        yield _finding(drive, message, Action.INVESTIGATE, Status.WARN)


_BAD_ATTRIBUTES = {
    184: "end-to-end errors",
    197: "sectors wait to be reallocated",
    198: "sectors cannot be read",
}


def _ata(drive: Drive) -> Iterator[Finding]:
    for one in drive.attributes.values():
        if one.failed == "now":
            yield _finding(drive, f"{one.name} is at its threshold", Action.VENDOR_TICKET)
        elif one.failed == "past":
            message = f"{one.name} was at its threshold"
            yield _finding(drive, message, Action.INVESTIGATE, Status.WARN)
        if one.id in _BAD_ATTRIBUTES and one.raw:
            yield _finding(drive, f"{one.raw} {_BAD_ATTRIBUTES[one.id]}", Action.VENDOR_TICKET)
    moved = drive.attributes.get(5)
    if moved and moved.raw:
        bad = moved.raw >= _REALLOCATED_MAX
        status = Status.FAIL if bad else Status.WARN
        action = Action.VENDOR_TICKET if bad else Action.INVESTIGATE
        yield _finding(drive, f"{moved.raw} reallocated sectors", action, status)
    crc = drive.attributes.get(199)
    if crc and crc.raw:
        status = Status.FAIL if crc.raw > _CRC_MAX else Status.WARN
        yield _finding(drive, f"{crc.raw} CRC errors on its cable", Action.RESEAT, status)
    lost = drive.attributes.get(187)
    if lost and lost.raw:
        yield _finding(drive, f"{lost.raw} uncorrected errors reported", Action.INVESTIGATE, Status.WARN)


def _scsi(drive: Drive) -> Iterator[Finding]:
    if drive.grown_defects:
        yield _finding(drive, f"{drive.grown_defects} grown defects", Action.INVESTIGATE, Status.WARN)
    if drive.uncorrected:
        yield _finding(drive, f"{drive.uncorrected} uncorrected errors", Action.INVESTIGATE, Status.WARN)
