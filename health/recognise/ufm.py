"""Saved answers and logs of UFM."""

from __future__ import annotations

from health.errors import Unreadable
from health.outcome import Finding
from health.readers import ufm
from health.readers.json_text import plain, read_json
from health.rules import fabric as fabric_rules
from health.rules import ufm as ufm_rules


def judge(text: str) -> list[Finding]:
    """Judge one output by its own form. Raises Unreadable."""
    text = plain(text)
    if not text.lstrip().startswith("{"):
        if objects := ufm.read_objects(text):
            return ufm_rules.judge_objects(objects)
        return ufm_rules.judge_events(ufm.read_events(text))
    document = read_json("UFM answer", text)
    if "values" in document:
        return fabric_rules.judge_counters(ufm.read_telemetry(text))
    if all(_policy(entry) for entry in document.values()):
        return []  # a policy says what would be an alarm; none of it has happened
    raise Unreadable("UFM answer", "its JSON is of no form that is known")


def _policy(entry: object) -> bool:
    return (
        isinstance(entry, dict) and bool({"severity", "threshold"} & set(entry)) and "timestamp" not in entry
    )
