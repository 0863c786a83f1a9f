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
_ALIVE = re.compile(r"(?m)login: ?|Reached target .*(?:Multi-User|Graphical)|\.{3} ok\s*$|# $")


def judge(text: str, find_cause: FindCause) -> list[Finding]:
    """Judge a saved console with the causes that the caller knows."""
    if _TAKEN.search(text):
        return [_unproven("the console is held by another session")]
    cause = find_cause(text.encode("utf-8", "surrogateescape"))
    if cause:
        return [Finding("boot", "console", cause, Action.INVESTIGATE)]
    if _LOST.search(text):
        return [_unproven("the BMC closed the console session again and again")]
    said = _CLIENT.sub("", plain(text)).strip()
    if not said:
        return [_unproven("the console said nothing")]
    if not _ALIVE.search(plain(text)):
        return [_unproven("the console shows neither a login nor what stopped the boot")]
    return []


def _unproven(message: str) -> Finding:
    return Finding("boot", "console", message, Action.RERUN, Status.UNKNOWN)
