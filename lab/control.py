"""The line to a running lab: one JSON object a request and an answer, over a Unix socket.

Kept free of asyncio: a command to a lab that is up is done before that would be imported.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.errors import Exit, LabError, NoService

Request = Mapping[str, Any]
Answer = dict[str, Any]

NOT_UP = "invoke lab.up"


class RemoteError(LabError):
    """What the daemon refused or failed, as it said it; its causes travel as one text."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document["where"], document["what"], follow=document["follow"])
        self.code = Exit(document["code"])
        self.__cause__ = RuntimeError(document["why"])


def ask(path: Path, request: Request, timeout_s: float | None = 60.0) -> Answer:
    """Send one request and return the answer. Raises NoService when no daemon listens, RemoteError."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(timeout_s)
            with_short_path(path, line.connect)
            line.sendall(json.dumps(request).encode() + b"\n")
            with line.makefile("rb") as answers:
                raw = answers.readline()
    except TimeoutError as exc:
        raise NoService("lab", "its daemon does not answer", follow="invoke lab.down, then lab.up") from exc
    except OSError as exc:
        raise NoService("lab", "it is not up", follow=NOT_UP) from exc
    if not raw:
        raise NoService("lab", "its daemon went away in the middle of an answer", follow=NOT_UP)
    answer: Answer = json.loads(raw)
    if "error" in answer:
        raise RemoteError(answer["error"])
    return answer


def describe(error: LabError) -> Answer:
    """Return an error as it goes over the line."""
    return {
        "error": {
            "where": error.where,
            "what": str(error),
            "why": error.why,
            "follow": error.follow,
            "code": int(error.code),
        }
    }


def with_short_path(path: Path, use: Callable[[str], object]) -> None:
    """Name a socket through its folder's descriptor: Unix socket paths end at 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
