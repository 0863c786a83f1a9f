"""OAuth 1.0 PLAINTEXT as MAAS wants it: the signature is the token's secret."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote

from provision.maas.errors import MaasBadKey


class ApiKey(Protocol):
    """Something that gives the API key at the moment of use, so that it is held by nobody."""

    def reveal(self) -> str:
        """Return `consumer:token:secret`."""
        ...


def authorization(key: ApiKey, *, timestamp: int, nonce: str) -> str:
    """Return the Authorization header. Raises MaasBadKey without quoting the key."""
    parts = key.reveal().strip().split(":")
    if len(parts) != 3 or not all(parts):
        raise MaasBadKey("the MAAS API key is not of the form consumer:token:secret")
    consumer, token, secret = parts
    fields = {
        "oauth_version": "1.0",
        "oauth_signature_method": "PLAINTEXT",
        "oauth_consumer_key": consumer,
        "oauth_token": token,
        "oauth_signature": "&" + quote(secret, safe="~"),
        "oauth_nonce": nonce,
        "oauth_timestamp": str(timestamp),
    }
    return "OAuth " + ", ".join(f'{name}="{quote(value, safe="~")}"' for name, value in fields.items())
