"""What arrived at a BMC, so that a test can prove that something was, or was not, sent."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

HIDDEN = b"***"
# Set User Password and Set Channel Security Keys carry secrets.
_SECRET_COMMANDS = frozenset({(0x06, 0x47), (0x06, 0x56)})


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """One command in a session or before one (`user` is then empty)."""

    netfn: int
    command: int
    data: bytes
    user: str


class CommandLog:
    """The newest commands, and counts of all since the last clear()."""

    def __init__(self, length: int) -> None:
        self._recent: deque[LoggedCommand] = deque(maxlen=length)
        self._counts: Counter[tuple[int, int]] = Counter()
        self._requests: deque[tuple[str, str]] = deque(maxlen=length)
        self.datagrams = 0  # of any kind, pings and logins too

    def add(self, netfn: int, command: int, data: bytes, user: str) -> None:
        self._counts[netfn, command] += 1
        shown = HIDDEN if (netfn, command) in _SECRET_COMMANDS else data
        self._recent.append(LoggedCommand(netfn, command, shown, user))

    def add_request(self, method: str, path: str) -> None:
        self._requests.append((method, path))

    @property
    def requests(self) -> tuple[tuple[str, str], ...]:
        """The newest Redfish requests: method and path."""
        return tuple(self._requests)

    @property
    def recent(self) -> tuple[LoggedCommand, ...]:
        return tuple(self._recent)

    @property
    def total(self) -> int:
        return self._counts.total()

    def count(self, netfn: int, command: int) -> int:
        return self._counts[netfn, command]

    def clear(self) -> None:
        self._recent.clear()
        self._counts.clear()
        self._requests.clear()
        self.datagrams = 0
