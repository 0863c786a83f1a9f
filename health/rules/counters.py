"""What counters say by how much they have grown, never by what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Where a counter of 16 or 32 bits stays when it is full.
_FULL = frozenset({65535, 4294967295})


@dataclass(frozen=True, slots=True)
class Growth:
    """How much counters grew over a window of seconds. `full` are those that can grow no more."""

    seconds: float
    by: Mapping[str, int]
    full: frozenset[str]

    def hourly(self, name: str) -> float:
        """Return the growth of one counter an hour."""
        return self.by.get(name, 0) * 3600 / self.seconds if self.seconds > 0 else 0.0


def growth(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> Growth:
    """Compare two readings; a counter that went down was cleared, and what it holds has come since."""
    by = {
        name: value - before.get(name, 0) if value >= before.get(name, 0) else value
        for name, value in after.items()
    }
    full = frozenset(name for name, value in after.items() if value in _FULL)
    return Growth(seconds, by, full)
