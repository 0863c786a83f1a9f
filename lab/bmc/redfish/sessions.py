"""Redfish sessions: tokens, the limit, expiry by silence."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lab.bmc.users import Account

TIMEOUT_S = 1800.0


@dataclass(slots=True)
class WebSession:
    """One login over HTTPS."""

    session_id: str
    token: str = field(repr=False)
    account: Account
    address: str
    last_seen: float


class WebSessions:
    """The session slots. `now` is a monotonic clock in seconds."""

    def __init__(self, limit: int, now: Callable[[], float]) -> None:
        self.limit = limit
        self.opened = 0
        self.closed = 0
        self._now = now
        self._next = 1
        self._by_token: dict[str, WebSession] = {}

    def __len__(self) -> int:
        return len(self._by_token)

    def __iter__(self) -> Iterator[WebSession]:
        self._expire()
        return iter(tuple(self._by_token.values()))

    def open(self, account: Account, address: str) -> WebSession | None:
        """Take a slot; None where all are in use."""
        self._expire()
        if len(self._by_token) >= self.limit:
            return None
        session = WebSession(str(self._next), secrets.token_hex(16), account, address, self._now())
        self._next += 1
        self.opened += 1
        self._by_token[session.token] = session
        return session

    def by_token(self, token: str) -> WebSession | None:
        self._expire()
        session = self._by_token.get(token)
        if session is not None:
            session.last_seen = self._now()
        return session

    def close(self, session_id: str) -> bool:
        """End a session; false where there is none of that id."""
        for session in self:
            if session.session_id == session_id:
                del self._by_token[session.token]
                self.closed += 1
                return True
        return False

    def clear(self) -> None:
        self._by_token.clear()

    def _expire(self) -> None:
        now = self._now()
        stale = [token for token, session in self._by_token.items() if now - session.last_seen > TIMEOUT_S]
        for token in stale:
            del self._by_token[token]
