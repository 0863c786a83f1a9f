"""The line to a running lab: one JSON object a request and an answer, over a Unix socket."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from lab.errors import Exit, LabError, NoService

Request = Mapping[str, Any]
Answer = dict[str, Any]
Serve = Callable[[Request], Awaitable[Answer]]

_LONGEST = 4 * 1024 * 1024
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
            _with_short_path(path, line.connect)
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


async def listen(path: Path, serve: Serve) -> asyncio.Server:
    """Answer requests on `path`; whoever is not root cannot reach it."""
    path.unlink(missing_ok=True)
    line = socket.socket(socket.AF_UNIX)
    _with_short_path(path, line.bind)
    path.chmod(0o600)

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while raw := await reader.readline():
                writer.write(json.dumps(await _answer(serve, raw)).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    return await asyncio.start_unix_server(one, sock=line, limit=_LONGEST)


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


async def _answer(serve: Serve, raw: bytes) -> Answer:
    try:
        return await serve(json.loads(raw))
    except LabError as exc:
        return describe(exc)


def _with_short_path(path: Path, use: Callable[[str], object]) -> None:
    """Name a socket through its folder's descriptor: Unix socket paths end at 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
