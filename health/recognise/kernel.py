"""Saved kernel logs."""

from __future__ import annotations

from health.errors import Unreadable
from health.outcome import Action, Finding, Status
from health.readers.kernel import read_kernel
from health.rules.kernel import judge_lines
from health.rules.xid import events, judge_events


def judge(text: str) -> list[Finding]:
    """Judge a kernel log in any form."""
    if text.startswith("dmesg: "):
        said = text.strip().splitlines()[0][:120]
        return [Finding("kernel", "kernel log", said, Action.RERUN, Status.UNKNOWN)]
    lines = read_kernel(text)
    if not lines:
        raise Unreadable("kernel log", "it is empty")
    return judge_events(events(lines)) + judge_lines(lines)
