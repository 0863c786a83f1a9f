"""What the state of a clock says."""

from __future__ import annotations

from health.outcome import Action, Finding, Status
from health.readers.clock import ClockState

OFFSET_MAX_S = 1.0
_OFFSET_WATCH = 0.1


def judge_clock(state: ClockState, *, offset_max_s: float = OFFSET_MAX_S) -> list[Finding]:
    """Judge a clock: it follows a source, closely."""
    if not state.synchronised:
        return [Finding("host", "clock", "the clock is not synchronised", Action.RESTART_SERVICE)]
    offset = abs(state.offset_s or 0.0)
    if offset >= offset_max_s:
        return [Finding("host", "clock", f"the clock is {offset:.3f} s off", Action.RESTART_SERVICE)]
    if offset >= _OFFSET_WATCH * offset_max_s:
        message = f"the clock is {offset:.3f} s off"
        return [Finding("host", "clock", message, Action.INVESTIGATE, Status.WARN)]
    return []
