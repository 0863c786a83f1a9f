"""HTTP answers of a BMC, and the typed errors that bad ones become."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from bmc import errors
from bmc.capability import BmcTarget
from bmc.errors import BadAnswer, Occupied, Rejection, Unreachable
from bmc.redfish.resource import Resource

Json = dict[str, Any]

_FULL = ("RAC0218", "SessionLimitExceeded", "MaxSession", "CreateLimitReached")


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def location(self) -> str | None:
        """The path of the Location header, without scheme and host."""
        found = self.headers.get("Location")
        if not found:
            return None
        parts = urlsplit(found)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def json(self) -> Json:
        """Return the body's object; empty where the body is none. Raises ValueError."""
        found = json.loads(self.body) if self.body.strip() else {}
        if not isinstance(found, dict):
            raise ValueError("no JSON object")  # noqa: TRY004  the caller treats both the same
        return found


def broken(target: BmcTarget, path: str, exc: Exception, timeout_s: float) -> errors.BmcError:
    """Return what an exception of the HTTP library means."""
    node, host = target.name, target.host
    match exc:
        case aiohttp.ServerFingerprintMismatch():
            return errors.CertificateRefused(node, host, exc.expected.hex(), exc.got.hex())
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return Unreachable(node, host, timeout_s, "no HTTPS connection")
        case TimeoutError():
            return Unreachable(node, host, timeout_s, f"no answer to {path}")
        case aiohttp.ClientPayloadError():
            return BadAnswer(node, host, f"{path} ends in the middle")
        case OSError():
            return Unreachable(node, host, timeout_s, "the connection broke")
    return BadAnswer(node, host, f"{path}: {type(exc).__name__}")


def refusal(target: BmcTarget, what: str, answer: Answer) -> errors.BmcError:
    """Return what an answer without success means."""
    node, host, username = target.name, target.host, target.credential.username
    said = " ".join(row.text("MessageId") or "" for row in _details(answer))
    if any(word in said for word in _FULL):
        return errors.Busy(node, host, Occupied.SESSIONS)
    text = next((text for row in _details(answer) if (text := row.text("Message"))), "")
    error: errors.BmcError = errors.CommandRefused(node, host, what, answer.status, text)
    match answer.status:
        case 401:
            error = errors.AuthRejected(node, host, username, Rejection.NOT_TOLD)
        case 403 if "License" in said:
            error = errors.Unsupported(node, host, f"{what} without a licence")
        case 403:
            error = errors.PrivilegeTooLow(node, host, username, what)
        case 404 | 405 | 410 | 501:
            error = errors.Unsupported(node, host, what)
        case 429 | 503:
            error = errors.Busy(node, host, Occupied.BMC, _seconds(answer.headers.get("Retry-After")))
    return error


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None


def _details(answer: Answer) -> tuple[Resource, ...]:
    """Return the messages of an error body, the most severe first; none where it is no Redfish."""
    try:
        body = Resource("", answer.json())
    except ValueError:
        return ()
    rows = body.rows("error", "@Message.ExtendedInfo") or body.rows("@Message.ExtendedInfo")
    order = {"Critical": 0, "Warning": 1}
    return tuple(sorted(rows, key=lambda row: order.get(row.text("Severity") or "", 2)))
