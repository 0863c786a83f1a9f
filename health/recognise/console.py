"""Saved consoles. What stops a boot is known elsewhere; this tells silence and success from trouble."""

from __future__ import annotations

import re
from collections.abc import Callable

from health.outcome import Action, Finding, Status
from health.readers.json_text import plain

# Names what stopped a boot from a console's bytes, or None where nothing did.
FindCause = Callable[[bytes], str | None]

_CLIENT = re.compile(
    r"(?im)^.*(?:SOL|Enter `|goconserver|Session is te|startup lock|Could not receive|Get Device ID).*$"
)
_TAKEN = re.compile(r"(?i)SOL payload already active|console (?:is )?busy|already in use")
_LOST = re.compile(r"(?i)SOL session closed by BMC|Error in SOL session|SOL session.*timed out")
_STOPPED = re.compile(
    r"(?m)^(?:You are in (?:emergency|rescue) mode.*|Give root password for maintenance.*|PXE-E\d+: .*"
    r"|Press Enter for maintenance.*)$"
)
_GOING = re.compile(
    r"reboot: (?:Restarting system|Power down)|Reached target .*(?:System Reboot|Power-Off|Shutdown)"
    r"|systemd-shutdown\[\d+\]"
)
_LOGIN = re.compile(r"login: ?")
_ALIVE = re.compile(r"(?m)login: ?|Reached target .*(?:Multi-User|Graphical)|\.{3} ok\s*$|# $")


def judge(text: str, find_cause: FindCause) -> list[Finding]:
    """Judge a saved console with the causes that the caller knows."""
    if _TAKEN.search(text):
        return [_unproven("the console is held by another session")]
    cause = find_cause(text.encode("utf-8", "surrogateescape"))
    stopped = _STOPPED.search(plain(text))
    if cause or stopped:
        said = cause or (stopped[0].strip()[:120] if stopped else "")
        return [Finding("boot", "console", said, Action.INVESTIGATE)]
    doubt = _doubt(text)
    return [_unproven(doubt)] if doubt else []


def _doubt(text: str) -> str | None:
    """Say why a console that shows no fault proves nothing, or None where it does."""
    said = _CLIENT.sub("", plain(text)).strip()
    reasons = (
        (_LOST.search(text), "the BMC closed the console session again and again"),
        (not said, "the console said nothing"),
        (
            _LOGIN.search(said) and _GOING.search(_LOGIN.split(said)[-1]),
            "the node goes down again after its login prompt",
        ),
        (
            not _ALIVE.search(plain(text)),
            "the console shows neither a login nor what stopped the boot",
        ),
    )
    return next((why for doubted, why in reasons if doubted), None)


def _unproven(message: str) -> Finding:
    return Finding("boot", "console", message, Action.RERUN, Status.UNKNOWN)
