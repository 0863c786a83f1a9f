"""Saved kernel logs."""

from __future__ import annotations

from health.outcome import Finding
from health.readers.kernel import read_kernel
from health.rules.kernel import judge_lines
from health.rules.xid import events, judge_events


def judge(text: str) -> list[Finding]:
    """Judge a kernel log in any form."""
    lines = read_kernel(text)
    return judge_events(events(lines)) + judge_lines(lines)
