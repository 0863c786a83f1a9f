"""Who asks: a token, or the client certificate that nginx checked."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_LINE = re.compile(r"([A-Za-z0-9_.@-]+)\s+sha256:([0-9a-f]{64})")
_COMMON_NAME = re.compile(r"(?:^|,)CN=([A-Za-z0-9_.@ -]+)")

NOBODY = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Names and the sha256 of their tokens: whoever reads the file learns no token."""

    hashes: tuple[tuple[str, str], ...] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read lines of `NAME sha256:HEX`; # begins a comment. Raises OSError, ValueError."""
        found = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            text = line.partition("#")[0].strip()
            if not text:
                continue
            match = _LINE.fullmatch(text)
            if match is None:
                # The line is not repeated: it may be a token that somebody wrote in clear.
                raise ValueError(f"{path}:{number}: a line is NAME sha256:HEX")
            found.append((match[1], match[2]))
        return cls(tuple(found))

    def name_of(self, token: str) -> str:
        """Return whose token it is, or NOBODY."""
        given = hashlib.sha256(token.encode()).hexdigest()
        name = NOBODY
        for one, known in self.hashes:
            if hmac.compare_digest(given, known):
                name = one
        return name


def identify(headers: Mapping[str, str], tokens: Tokens, *, behind_nginx: bool) -> str:
    """Return the name behind a request, or NOBODY. A wrong token never falls back to a certificate."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind:
        return tokens.name_of(token.strip()) if kind.lower() == "bearer" else NOBODY
    if behind_nginx and headers.get("x-client-verify") == "SUCCESS":
        match = _COMMON_NAME.search(headers.get("x-client-name", ""))
        return f"cn:{match[1]}" if match else NOBODY
    return NOBODY
