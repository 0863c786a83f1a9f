"""Finds the one line that says why a machine failed, in its events and script results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from provision.maas.model import Event, ScriptResult

_MOST = 300

# An attempt begins with one of these; what is older belongs to another attempt.
_BEGINNINGS = frozenset(
    {"Deploying", "Commissioning", "Testing", "Releasing", "Disk erasing", "Entering rescue mode"}
)
# MAAS's own summary: true, and it explains nothing.
_HOLLOW = ("Installation failed (refer to the installation log", "Failed to", "Marking node failed")
_STEPS = frozenset(
    {
        "Powering on", "Performing PXE boot", "PXE Request", "Loading ephemeral", "Configuring storage",
        "Installing OS", "Configuring OS", "Gathering information", "Rebooting", "Running test",
        "Image Deployed", "Power cycling", "Booting installed OS", "TFTP Request", "HTTP Request",
    }
)  # fmt: skip

# Where an installer says what is wrong, the most telling first.
_TELLING = (
    re.compile(r"no space left on device", re.IGNORECASE),
    re.compile(r"input/output error|i/o error", re.IGNORECASE),
    re.compile(r"^E: |\berror:", re.IGNORECASE),
    re.compile(r"cannot|could not|unable to|failed to|no such|not found|refused|timed out", re.IGNORECASE),
)  # fmt: skip
# Curtin reports that a step failed, not why, in these.
_WRAPPING = re.compile(
    r"unexpected error while running command|installation failed with exception|^curtin: |"
    r"^(exit code|reason|stdout|command): ?|running command \[",
    re.IGNORECASE,
)
_NOISE = re.compile(r"^(\d{4}-\d\d-\d\d[T ][\d:.,]+\S*\s+)?(stderr:\s*)?", re.IGNORECASE)


def failure_reason(events: Sequence[Event], results: Sequence[ScriptResult] = ()) -> str | None:
    """Return one line, or None where nothing of the last attempt explains a failure.

    `events` in any order; only those of the last attempt count. `results` may hold any kinds and
    runs; of each kind only the newest run counts. Outputs are used where they were asked for.
    """
    attempt = _last_attempt(events)
    for found in (_from_scripts(results), _from_events(attempt)):
        if found:
            return _one_line(found)
    return None


def installer_reason(log: str) -> str | None:
    """Return the line of an installation log that says why it failed, or None."""
    lines = [_NOISE.sub("", line.strip()) for line in log.splitlines()]
    told = [line for line in lines if line and not _WRAPPING.search(line)]
    # The end counts: what failed is near where it stopped, and warnings of earlier steps are not it.
    for pattern in _TELLING:
        for line in reversed(told[-60:]):
            if pattern.search(line):
                return _one_line(line)
    return None


def _last_attempt(events: Sequence[Event]) -> list[Event]:
    """Return the last attempt's events, newest first."""
    found: list[Event] = []
    for event in sorted(events, key=lambda one: one.id, reverse=True):
        found.append(event)
        if event.type in _BEGINNINGS and event.level != "DEBUG":
            break
    return found


def _from_scripts(results: Sequence[ScriptResult]) -> str | None:
    newest: dict[str, int] = {}
    for result in results:
        newest[result.kind] = max(newest.get(result.kind, result.set_id), result.set_id)
    failed = [result for result in results if result.failed and result.set_id == newest[result.kind]]
    if not failed:
        return None
    installing = next((result for result in failed if result.kind == "Installation"), None)
    if installing is not None:
        return installer_reason(installing.output or "")
    first = min(failed, key=lambda result: result.id)
    said = _last_words(first.output or "")
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"{_script(first)}{f': {said}' if said else ''}{more}"


def _script(result: ScriptResult) -> str:
    on = f" on {result.device}" if result.device else ""
    code = f" (exit status {result.exit_status})" if result.exit_status else ""
    return f"{result.name}{on} {result.status_name.lower()}{code}"


def _from_events(attempt: Sequence[Event]) -> str | None:
    bad = [event for event in attempt if event.level in {"ERROR", "CRITICAL"}]
    if not bad:
        bad = [event for event in attempt if event.type.startswith("Failed ") and event.description]
    if not bad:
        return None
    # The oldest that says something is the cause; MAAS's summary comes after it.
    telling = [event for event in reversed(bad) if not event.description.startswith(_HOLLOW)]
    chosen = (telling or list(reversed(bad)))[0]
    said = _without_user(chosen.description) or chosen.type
    if "timed out" in said:
        step = next((event for event in attempt if event.type in _STEPS), None)
        return f"{said.rstrip('.')}; the last thing seen was {step.type if step else 'nothing'}"
    return said if chosen.type in {"Marking node failed"} or said == chosen.type else f"{chosen.type}: {said}"


def _without_user(description: str) -> str:
    return re.sub(r"^\([^)]*\)( - )?", "", description).strip()


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if any(pattern.search(line) for pattern in _TELLING)]
    return (telling or lines or [""])[-1]


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST else flat[: _MOST - 1] + "…"
