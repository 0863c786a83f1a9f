"""Saved Redfish answers."""

from __future__ import annotations

from health.outcome import Finding
from health.readers.redfish import read_resource
from health.rules.redfish import judge_resource


def judge(text: str) -> list[Finding]:
    """Judge one answer. Raises Unreadable."""
    return judge_resource(read_resource(text))
