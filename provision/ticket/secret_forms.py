"""The forms in which a secret can lie in a file: as it is, and as protocols and tools write it."""

from __future__ import annotations

import base64
import html
import json
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

LEAST = 4  # bytes; a shorter secret cannot be told from ordinary text
_LEAST_ENCODED = 6  # letters of base64 or hex


def plain_forms(secret: str) -> Iterator[bytes]:
    """Yield the forms that stand in one piece."""
    data = secret.encode()
    texts = [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(secret).replace("/", "\\/")[1:-1],
        html.escape(secret),
        html.escape(secret).replace("&#x27;", "&#39;"),
        html.escape(secret).replace("&#x27;", "&apos;"),
        shlex.quote(secret).removeprefix("'").removesuffix("'"),
        *_percent(data),
    ]
    yield from (text.encode() for text in texts)
    yield secret.encode("utf-16-le")
    if len(data) * 2 >= _LEAST_ENCODED:
        yield data.hex().encode()
        yield data.hex().upper().encode()


def folded_forms(secret: str) -> Iterator[bytes]:
    """Yield the base64 forms, wherever in a longer text the secret began. Lines may break them."""
    for data in {secret.encode(), secret.encode("utf-16-le")}:
        for code in _base64(data):
            if len(code) >= _LEAST_ENCODED:
                yield code.encode()
                yield code.replace("+", "-").replace("/", "_").encode()
                yield from (form.encode() for form in _percent(code.encode()) if "%" in form)


def _percent(data: bytes) -> Iterator[str]:
    """Yield URL encodings: only what must be, everything, and with small letters."""
    every = "".join(f"%{byte:02X}" for byte in data)
    for text in (quote(data, safe=""), quote(data), quote_plus(data), every):
        yield text
        yield "".join(_small(part) for part in _split(text))


def _split(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        size = 3 if text[at] == "%" else 1
        yield text[at : at + size]
        at += size


def _small(part: str) -> str:
    return part.lower() if part.startswith("%") else part


def _base64(data: bytes) -> Iterator[str]:
    """Yield what of base64 depends on `data` alone, for each of the three places it can begin at."""
    for lead in range(3):
        code = base64.b64encode(bytes(lead) + data).decode()
        first = (lead * 8 + 5) // 6  # letters that hold bits of what stands before
        yield code[first : (lead + len(data)) * 8 // 6]
