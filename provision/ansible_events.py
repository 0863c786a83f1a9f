"""Reads ansible-runner's events into values, and gathers from them how a play went."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_MOST = 400


class PlayEventKind(StrEnum):
    """What an event says of one task on the node."""

    STARTED = "started"
    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    IGNORED = "ignored"  # failed, and the play was told not to mind
    UNREACHABLE = "unreachable"
    NOTE = "note"  # what Ansible prints outside tasks: warnings, errors of the playbook


class PlayOutcome(StrEnum):
    """How a play ended."""

    OK = "ok"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class PlayEvent:
    """One step of a play. `at` is UTC, `seconds` how long the task took, None before its end."""

    at: datetime
    kind: PlayEventKind
    role: str | None
    task: str | None
    message: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class PlayStats:
    """How many tasks ended how."""

    ok: int = 0
    changed: int = 0
    skipped: int = 0
    failed: int = 0
    unreachable: int = 0
    rescued: int = 0
    ignored: int = 0


@dataclass(slots=True)
class Course:
    """What has been seen of a play so far. Filled by one thread, read when that is done."""

    last: PlayEvent | None = None
    failure: PlayEvent | None = None
    ignored: PlayEvent | None = None
    stats: PlayStats | None = None
    played: bool = False  # the playbook that ran last came to its end and did something
    notes: list[str] = field(default_factory=list)

    def add(self, stats: PlayStats | None) -> None:
        """Count what one playbook did to what those before it did."""
        if stats is not None:
            self.played = bool(stats.ok or stats.skipped)
            before = asdict(self.stats or PlayStats())
            self.stats = PlayStats(**{name: before[name] + count for name, count in asdict(stats).items()})

    def take(self, event: PlayEvent) -> None:
        """Remember what later explains the outcome."""
        match event.kind:
            case PlayEventKind.FAILED | PlayEventKind.UNREACHABLE:
                self.failure = event
            case PlayEventKind.IGNORED:
                self.ignored = event
            case PlayEventKind.NOTE:
                self.notes = [*self.notes[-19:], event.message]
                return
            case _:
                pass
        self.last = event


_KINDS = {
    "playbook_on_task_start": PlayEventKind.STARTED,
    "playbook_on_handler_task_start": PlayEventKind.STARTED,
    "runner_on_ok": PlayEventKind.OK,
    "runner_on_skipped": PlayEventKind.SKIPPED,
    "runner_on_failed": PlayEventKind.FAILED,
    "runner_on_unreachable": PlayEventKind.UNREACHABLE,
    "runner_retry": PlayEventKind.STARTED,
}


def read_event(raw: Mapping[str, Any]) -> PlayEvent | None:
    """Return what an event of ansible-runner says, or None where it says nothing about a task."""
    name = raw.get("event")
    at = _time(raw.get("created"))
    if name in {"verbose", "error", "warning", "deprecated", "system_warning"}:
        text = one_line(str(raw.get("stdout") or ""))
        return PlayEvent(at, PlayEventKind.NOTE, None, None, text) if text else None
    kind = _KINDS.get(str(name))
    if kind is None:
        return None
    data = _mapping(raw.get("event_data"))
    result = _mapping(data.get("res"))
    if kind is PlayEventKind.OK and result.get("changed") is True:
        kind = PlayEventKind.CHANGED
    if kind is PlayEventKind.FAILED and data.get("ignore_errors") is True:
        kind = PlayEventKind.IGNORED
    bad = kind in {PlayEventKind.FAILED, PlayEventKind.IGNORED, PlayEventKind.UNREACHABLE}
    duration = data.get("duration")
    return PlayEvent(
        at=at,
        kind=kind,
        role=_text(data.get("role")),
        task=_task(data),
        message=failure_message(result) if bad else "",
        seconds=float(duration) if isinstance(duration, (int, float)) else None,
    )


def read_stats(raw: Mapping[str, Any]) -> PlayStats | None:
    """Return the totals, where this event is the one that holds them."""
    if raw.get("event") != "playbook_on_stats":
        return None
    data = _mapping(raw.get("event_data"))

    def total(name: str) -> int:
        return sum(count for count in _mapping(data.get(name)).values() if isinstance(count, int))

    return PlayStats(
        ok=total("ok"),
        changed=total("changed"),
        skipped=total("skipped"),
        failed=total("failures"),
        unreachable=total("dark"),
        rescued=total("rescued"),
        ignored=total("ignored"),
    )


def failure_message(result: Mapping[str, Any]) -> str:
    """Return the one line of a failed task's result that says most."""
    for item in result.get("results") or ():
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            which = item.get("item")
            said = failure_message(item)
            return one_line(f"{which}: {said}") if isinstance(which, (str, int)) else said
    if "censored" in result:
        return "the output is hidden (no_log)"
    said = str(result.get("msg") or "").strip()
    # The module's own words for "it failed" explain nothing; what it printed does.
    vague = said in {"", "non-zero return code"} or said.startswith("MODULE FAILURE")
    if vague:
        printed = next(
            (text for key in ("stderr", "module_stderr", "stdout", "module_stdout")
             if (text := str(result.get(key) or "").strip())),
            "",
        )  # fmt: skip
        last = printed.splitlines()[-1] if printed else ""
        code = f"exit status {result['rc']}" if "rc" in result else said
        said = ": ".join(part for part in (code, last) if part)
    return one_line(said) or "no message"


def one_line(text: str) -> str:
    """Return text without escapes and line breaks, cut to a length that fits a report."""
    flat = " ".join(_ESCAPES.sub("", text).split())
    return flat if len(flat) <= _MOST else flat[: _MOST - 1] + "…"


def _task(data: Mapping[str, Any]) -> str | None:
    # Runner keeps the role apart; Ansible prefixes the task's name with it in some events.
    name = _text(data.get("task"))
    role = _text(data.get("role"))
    return name.removeprefix(f"{role} : ") if name and role else name


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _text(raw: object) -> str | None:
    return raw if isinstance(raw, str) and raw else None


def _time(raw: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(raw))
    except ValueError:
        return datetime.now(UTC)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
