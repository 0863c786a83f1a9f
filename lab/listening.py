"""The daemon's end of the control line."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from lab.control import Answer, Request, describe, with_short_path
from lab.errors import LabError

Serve = Callable[[Request], Awaitable[Answer]]

_LONGEST = 4 * 1024 * 1024


async def listen(path: Path, serve: Serve) -> asyncio.Server:
    """Answer requests on `path`; whoever is not root cannot reach it."""
    path.unlink(missing_ok=True)
    line = socket.socket(socket.AF_UNIX)
    with_short_path(path, line.bind)
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


async def _answer(serve: Serve, raw: bytes) -> Answer:
    try:
        return await serve(json.loads(raw))
    except LabError as exc:
        return describe(exc)
