"""OAuth 1.0 with PLAINTEXT signatures, as MAAS checks it."""

from __future__ import annotations

import re
from collections import deque
from urllib.parse import unquote

from lab.maas.config import User
from lab.maas.errors import Refusal

# Seconds that a request's timestamp may lie behind; one that lies ahead is accepted.
THRESHOLD = 300
_NONCES_KEPT = 200_000
_FIELD = re.compile(r'(\w+)="([^"]*)"')
_NEEDED = (
    "oauth_consumer_key",
    "oauth_token",
    "oauth_signature",
    "oauth_signature_method",
    "oauth_timestamp",
    "oauth_nonce",
)


class Keys:
    """The API keys, and the nonces that were used with them."""

    def __init__(self, users: list[User]) -> None:
        self._by_token: dict[str, tuple[User, str, str]] = {}
        self._seen: set[tuple[str, str]] = set()
        self._order: deque[tuple[str, str]] = deque()
        for user in users:
            consumer, token, secret = user.api_key.split(":")
            self._by_token[token] = (user, consumer, secret)

    def user_of(self, header: str | None, now: float) -> User | None:
        """Return who signed a request; None when it is not signed. Raises Refusal."""
        if not header or not header.startswith("OAuth "):
            return None
        given = {name: unquote(value) for name, value in _FIELD.findall(header)}
        if any(name not in given for name in _NEEDED):
            return None
        if given["oauth_consumer_key"] not in {consumer for _, consumer, _ in self._by_token.values()}:
            raise _unauthorized("Invalid API key.")
        known = self._by_token.get(given["oauth_token"])
        if known is None or known[1] != given["oauth_consumer_key"]:
            raise _unauthorized(f"'Invalid access token: {given['oauth_token']}'")
        user, _, secret = known
        self._check_time(given["oauth_timestamp"], now)
        self._check_nonce(given["oauth_token"], given["oauth_nonce"])
        if given["oauth_signature"] not in {f"&{secret}", f"%26{secret}"}:
            # MAAS does print the secret that it expected; so a client must not log this body.
            raise _unauthorized(f"'Invalid signature. Expected signature base string: &{secret}'")
        return user

    def _check_time(self, stamp: str, now: float) -> None:
        if not stamp.isdigit():
            raise _unauthorized("'Invalid timestamp'")
        lapsed = int(now) - int(stamp)
        if lapsed > THRESHOLD:
            text = f"given {stamp} and now {int(now)} has a greater difference than threshold {THRESHOLD}"
            raise _unauthorized(f"'Expired timestamp: {text}'")

    def _check_nonce(self, token: str, nonce: str) -> None:
        pair = (token, nonce)
        if pair in self._seen:
            raise _unauthorized(f"'Nonce already used: {nonce}'")
        self._seen.add(pair)
        self._order.append(pair)
        if len(self._order) > _NONCES_KEPT:
            self._seen.discard(self._order.popleft())


def _unauthorized(text: str) -> Refusal:
    return Refusal(401, f"Authorization Error: {text}", content_type="text/html; charset=utf-8")
