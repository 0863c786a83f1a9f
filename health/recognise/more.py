"""Saved outputs that answer in a word or a short table: what good and bad look like in each."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.outcome import Action, Finding, Status
from health.recognise import kernel

Judge = Callable[[str], list[Finding]]
Forms = tuple[tuple[str, Judge], ...]

_NIC_ERRORS = re.compile(
    r"^\s+(?P<name>rx_crc_errors_phy|rx_symbol_err_phy|rx_corrected_bits_phy_err|tx_errors_phy|rx_fcs_errors"
    r"|rx_pcs_symbol_err_phy|link_down_events_phy): (?P<count>\d+)$",
    re.MULTILINE,
)
_LINK_DOWNS = 10


def well(_: str) -> list[Finding]:
    """Accept a list of what is there: nothing that it shows is wrong by itself."""
    return []


def _expects(pattern: str, component: str, action: Action, *, mild: bool = False) -> Judge:
    """Make a judge for outputs that are well only where the pattern is found."""

    def judge(text: str) -> list[Finding]:
        if re.search(pattern, text, re.MULTILINE):
            return []
        line = next((line.strip() for line in text.splitlines() if line.strip()), "it says nothing")
        return [Finding(component, component, line[:120], action, Status.WARN if mild else Status.FAIL)]

    return judge


def _rejects(pattern: str, component: str, action: Action, *, mild: bool = False) -> Judge:
    """Make a judge for outputs that are well where the pattern is not found."""

    def judge(text: str) -> list[Finding]:
        status = Status.WARN if mild else Status.FAIL
        return [
            Finding(component, component, found[0].strip()[:120], action, status)
            for found in re.finditer(pattern, text, re.MULTILINE)
        ]

    return judge


def _memory_events(text: str) -> list[Finding]:
    """Judge `ras-mc-ctl --summary`."""
    bad = re.findall(r"^\s+(?:Uncorrected|Fatal).*$", text, re.MULTILINE)
    mild = re.findall(r"^\s+Corrected.*$", text, re.MULTILINE)
    found = [Finding("memory", "DIMMs", one.strip()[:120], Action.VENDOR_TICKET) for one in bad]
    return found + [
        Finding("memory", "DIMMs", one.strip()[:120], Action.INVESTIGATE, Status.WARN) for one in mild
    ]


def _array_detail(text: str) -> list[Finding]:
    """Judge `mdadm --detail`."""
    name = re.search(r"^(/dev/md\S+):", text, re.MULTILINE)
    who = name[1] if name else "array"
    state = re.search(r"^\s*State : (.+)$", text, re.MULTILINE)
    if state is None:
        return [Finding("disk", who, f"{who} does not say its state", Action.INVESTIGATE, Status.UNKNOWN)]
    if re.search(r"degraded|FAILED|inactive|broken", state[1]) or re.search(r"\bfaulty\b", text):
        return [Finding("disk", who, f"{who} is {state[1].strip()}", Action.RESEAT)]
    if re.search(r"recovering|resyncing|reshaping|PENDING", state[1]):
        return [Finding("disk", who, f"{who} is {state[1].strip()}", Action.RERUN, Status.WARN)]
    return []


def _nic_statistics(text: str) -> list[Finding]:
    """Judge `ethtool -S`, whose counters count since the driver was loaded."""
    return [
        Finding("nic", "interface", f"{hit['name']} is {hit['count']}", Action.INVESTIGATE, Status.WARN)
        for hit in _NIC_ERRORS.finditer(text)
        if int(hit["count"]) > (_LINK_DOWNS if hit["name"].startswith("link_down") else 0)
    ]


def _thermometers(text: str) -> list[Finding]:
    """Judge lm-sensors' own alarms."""
    return [
        Finding("temperature", line.split(":")[0].strip(), line.strip()[:120], Action.INVESTIGATE)
        for line in text.splitlines()
        if re.search(r"\bALARM\b", line)
    ]


def _journal(text: str) -> list[Finding]:
    """Judge lines of a journal: the kernel's by its rules, and programs that failed."""
    failed = re.findall(
        r"^.*systemd\[1\]: (\S+: Failed with result .*|Failed to start .*)$", text, re.MULTILINE
    )
    return kernel.judge(text) + [
        Finding("service", one.split(":")[0], one[:120], Action.RESTART_SERVICE) for one in failed
    ]


SYSTEM: Forms = (
    (r"^MS Name/IP address", _expects(r"^[\^=]\*", "clock", Action.RESTART_SERVICE)),
    (r"^(?:un)?synchroni[sz]ed to", _expects(r"^synchroni[sz]ed", "clock", Action.RESTART_SERVICE)),
    (r"^NTPSynchronized=", _expects(r"^NTPSynchronized=yes$", "clock", Action.RESTART_SERVICE)),
    (
        r"\A\s*(?:active|inactive|failed|activating|deactivating|running|degraded|starting|maintenance"
        r"|offline|enabled|disabled|masked)\s*\Z",
        _expects(r"^(?:active|running|enabled)$", "service", Action.RESTART_SERVICE),
    ),
    (
        r"^available: \d+ nodes|^node \d+ cpus:",
        _rejects(r"^node \d+ size: 0 MB$", "memory", Action.RESEAT),
    ),
    (r"^No Memory errors|Memory controller events summary", _memory_events),
    (r"^/dev/md\S*:$", _array_detail),
    (r"^\S+-(?:isa|pci|i2c|virtual|acpi|nvme)-\w+$", _thermometers),
    (r"^NVRM version:", well),
    (r"^Linux \S+ \d+\.\d+", well),
    (r"^(?:PRETTY_NAME|VERSION_ID|NAME)=", well),
    (r"^MemTotal:\s", well),
    (r"^processor\s*:\s*\d+", well),
    (r"^BOOT_IMAGE=", well),
    (r"^(?:core|real-time|data seg|scheduling) \S.*\(.*-\w\)", well),
    (
        r"^(?:\w{3} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) \S+ [\w.@/-]+(?:\[\d+\])?: ",
        _journal,
    ),
)
FABRIC: Forms = (
    (r"^Summary: \d+ nodes checked", _expects(r", 0 bad nodes found", "fabric", Action.INVESTIGATE)),
    (r"^sminfo: ", _expects(r"SMINFO_MASTER", "subnet manager", Action.INVESTIGATE)),
    (r"^NIC statistics:", _nic_statistics),
    (
        r"^\s*Status:\s+(?:Up to date|Update required)",
        _rejects(r"Update required", "firmware", Action.NONE, mild=True),
    ),
    (r"^(?:Switch|Ca|CA|Rt)\s*: 0x[0-9a-f]{16} ports \d+", well),
    (r"^\s*device\s+node GUID", well),
    (r"^DEV\s+PORT\s+INDEX\s+GID", well),
    (r"^driver: \w+$", well),
    (r"^(?:MLNX_OFED_LINUX|OFED-internal|DOCA|doca)-\S+", well),
    (r"^Image type:\s|^FW Version:\s", well),
    (r"^MST (?:modules|devices):", well),
)
LOAD: Forms = (
    (r"^\d+ GPUs? found\.", _rejects(r"^0 GPUs? found\.", "gpu", Action.POWER_CYCLE)),
    (r"^Result = (?:PASS|FAIL)", _rejects(r"^Result = FAIL.*", "gpu", Action.INVESTIGATE)),
    (r"\.{6} (?:PASSED|FAILED)$", _rejects(r"^.*\.{6} FAILED$", "load test", Action.INVESTIGATE)),
    (
        r"^Solution Validates|Failed Validation",
        _rejects(r"^.*Failed Validation.*$", "memory", Action.INVESTIGATE),
    ),
    (r"^Device \d+:.*\nRunning |^nvbandwidth Version", _expects(r"^SUM \w+ [\d.]+\s*$", "gpu", Action.RERUN)),
)
