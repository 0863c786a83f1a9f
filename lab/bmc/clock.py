"""The BMC's own clock: SEL time, which may be wrong."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Seconds since 1970 as the BMC believes; `wall` is the true time."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._offset = 0.0
        self.utc_offset_min = 0

    def now(self) -> int:
        return int(self._wall() + self._offset)

    def set(self, seconds: float) -> None:
        self._offset = seconds - self._wall()

    def correct(self) -> None:
        self._offset = 0.0
