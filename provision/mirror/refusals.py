"""Why the service says no: each reason has a code and an HTTP status, and reaches the client as JSON."""

from __future__ import annotations

from enum import Enum


class Why(Enum):
    """Reasons with their HTTP status. The names are part of the protocol."""

    NO_ROOM = ("no-room", 507)
    QUOTA = ("quota", 507)
    UNKNOWN = ("unknown", 404)
    NAME_TAKEN = ("name-taken", 409)
    PINNED = ("pinned", 409)
    OFFSET = ("offset", 409)
    TAKEN_OVER = ("taken-over", 409)
    DIGEST = ("digest", 422)
    BAD_REQUEST = ("bad-request", 400)
    TOO_LARGE = ("too-large", 413)
    BAD_VERSION = ("bad-version", 412)
    NOT_ALLOWED = ("not-allowed", 401)
    AGAIN = ("again", 503)
    NOT_WRITTEN = ("not-written", 500)

    def __init__(self, code: str, status: int) -> None:
        self.code = code
        self.status = status


class Refusal(Exception):
    """The service will not do what was asked; `detail` is for a human."""

    def __init__(self, why: Why, detail: str) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail
