"""One line of JSON for each request that changes something, with who made it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response


class AccessLog:
    """Appends to a file that may be rotated away at any time; None writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def write(self, request: Request, response: Response, who: str, seconds: float) -> None:
        """Write one line. Raises OSError."""
        if self._path is None:
            return
        client = request.headers.get("x-real-ip") or (request.client.host if request.client else "")
        line = {
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "who": who,
            "address": client,
            "method": request.method,
            "path": request.url.path,
            "status": response.status_code,
            "length": getattr(request.state, "length", int(request.headers.get("content-length") or 0)),
            "sha256": getattr(request.state, "sha256", ""),
            "seconds": round(seconds, 3),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
