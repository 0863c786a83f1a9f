"""Whether a node's sshd answers."""

from __future__ import annotations

import asyncio
import contextlib

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


async def answers_ssh(address: str, port: int) -> None:
    """Return once the SSH greeting has been read; waits for ever, so bound it or cancel it."""
    pause = _FIRST_PAUSE_S
    while True:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(3.0):
                if await _greeting(address, port):
                    return
        await asyncio.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_PAUSE_S)


async def _greeting(address: str, port: int) -> bool:
    reader, writer = await asyncio.open_connection(address, port)
    try:
        return (await reader.readline()).startswith(b"SSH-")
    finally:
        writer.close()
