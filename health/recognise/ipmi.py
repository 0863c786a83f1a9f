"""Saved outputs of ipmitool, FreeIPMI and OpenBMC's tools."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers import ipmi
from health.readers.json_text import plain
from health.rules import bmc

_REFUSALS = (
    (r"RAKP 2 HMAC is invalid", "wrong password"),
    (r"inactive session ID|insufficient resources", "the BMC's session table is full"),
    (r"invalid role|privilege", "the privilege asked for is not allowed"),
    (r"illegal parameter|unauthorized name", "wrong user name"),
    (r"Get (?:Auth|Channel Authentication) Capabilities", "no answer: IPMI over LAN is off or blocked"),
    (r"timed? ?out|timeout|No route|Address lookup|not reachable", "no answer"),
)  # fmt: skip


def judge(text: str) -> list[Finding]:
    """Judge one output by its own form. Raises Unreadable."""
    text = plain(text)
    for form, judge_form in _FORMS:
        if re.search(form, text, re.MULTILINE):
            return judge_form(text)
    raise Unreadable("BMC output", f"it begins {text.strip()[:60]!r}")


def _refused(text: str) -> list[Finding]:
    """Name the cause from the lines before: many causes end in the same last line."""
    causes = [cause for pattern, cause in _REFUSALS if re.search(pattern, text, re.IGNORECASE)]
    message = f"the BMC refused the session: {'; '.join(causes) or 'cause unknown'}"
    return [Finding("bmc", "BMC", message, Action.INVESTIGATE)]


def _sel(text: str) -> list[Finding]:
    return bmc.judge_events(ipmi.read_sel(text))


def _sensors(text: str) -> list[Finding]:
    return bmc.judge_sensors(ipmi.read_sensors(text))


def _monitoring(text: str) -> list[Finding]:
    return bmc.judge_sensors(ipmi.read_monitoring(text))


def _chassis(text: str) -> list[Finding]:
    return bmc.judge_chassis(ipmi.read_fields(text))


def _lan(text: str) -> list[Finding]:
    return bmc.judge_lan(ipmi.read_fields(text))


def _fru(text: str) -> list[Finding]:
    return bmc.judge_fru(ipmi.read_fru(text))


def _power(text: str) -> list[Finding]:
    if re.search(r"Power Measurement\s*:\s*Not Available|not activated|not supported", text, re.IGNORECASE):
        message = "the BMC does not measure its power"
        return [Finding("bmc", "DCMI", message, Action.NONE, Status.WARN)]
    return []


def _power_state(text: str) -> list[Finding]:
    if re.search(r"^Chassis Power is on$", text, re.MULTILINE):
        return []
    return [Finding("host", "chassis", text.strip()[:60], Action.INVESTIGATE, Status.WARN)]


def _controller(text: str) -> list[Finding]:
    if re.search(r"Selftest\s*:\s*(?!passed)", text):
        return [Finding("bmc", "BMC", "the BMC's self-test did not pass", Action.POWER_CYCLE)]
    return []


def _log_state(text: str) -> list[Finding]:
    full = re.search(r"Overflow\s*:\s*true|Percent Used\s*:\s*(?:9\d|100)%", text)
    return [Finding("bmc", "SEL", "the event log is full", Action.INVESTIGATE, Status.WARN)] if full else []


# What an output says of itself, most telling first.
_FORMS: tuple[tuple[str, Callable[[str], list[Finding]]], ...] = (
    (r"Unable to establish|RAKP|Get Auth Capabilities error|ipmi_ctx_open|session timeout", _refused),
    (r"^FRU Device Description|^FRU Inventory Device", _fru),
    (
        r"^ID\s*\|\s*Date|SEL Entry: FRU|^\s*[0-9a-f]+ \|\s*(?:\d\d/\d\d/\d\d|Pre-Init)"
        r"|SEL has no entries",
        _sel,
    ),
    (r"^ID\s*\|\s*(?:Sensor )?Name", _monitoring),
    (r"^Chassis Power is ", _power_state),
    (r"^Main Power Fault|^Power Overload", _chassis),
    (r"^Set in Progress|^IP Address Source", _lan),
    (r"Current Power\s*:|Instantaneous power reading|Power Measurement", _power),
    (r"^Selftest|^Device ID\s+:|Firmware Revision\s+:", _controller),
    (r"^SEL Information|^Percent Used", _log_state),
    (r"^Sensor ID|\|\s*(?:ok|ns|nc|cr|nr|na)\s*(?:\||$)|,(?:ok|ns|nc|cr|nr),", _sensors),
)
