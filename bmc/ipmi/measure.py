"""What is measured about BMCs: how long they take, and what became of sessions."""

from __future__ import annotations

from dataclasses import dataclass

Address = tuple[str, int] | tuple[str, int, int, int]

_FIRST_WAIT_S, _LEAST_WAIT_S, _MOST_WAIT_S = 0.5, 0.25, 3.0


@dataclass(slots=True)
class Counts:
    """What happened on an endpoint; `open` must come back to 0."""

    opened: int = 0
    closed: int = 0
    lost: int = 0  # ended without the BMC's word
    failed: int = 0  # logins that did not come to be
    retransmitted: int = 0
    dropped: int = 0  # packets that were nobody's or made no sense

    @property
    def open(self) -> int:
        return self.opened - self.closed - self.lost


@dataclass(slots=True)
class RoundTrip:
    """How long one BMC takes to answer, smoothed (RFC 6298), in seconds."""

    mean: float | None = None
    spread: float = 0.0
    backed_off: float = 0.0  # the last wait that was too short; holds until something is measured

    def measure(self, seconds: float) -> None:
        self.backed_off = 0.0
        if self.mean is None:
            self.mean, self.spread = seconds, seconds / 2
        else:
            self.spread += (abs(self.mean - seconds) - self.spread) / 4
            self.mean += (seconds - self.mean) / 8

    def wait_s(self) -> float:
        """Return how long to wait before sending again."""
        usual = _FIRST_WAIT_S if self.mean is None else self.mean + 4 * self.spread
        wanted = max(usual, self.backed_off)
        return min(wanted, _MOST_WAIT_S) if wanted > _LEAST_WAIT_S else _LEAST_WAIT_S
