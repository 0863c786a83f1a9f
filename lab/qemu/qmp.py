"""QEMU's monitor protocol: JSON lines over a socket, commands answered in order, events between."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

from lab.qemu.errors import MachineFailed, QmpRefused

EventSink = Callable[[str, dict[str, Any]], None]

_MAX_LINE_BYTES = 1 << 20


class Qmp:
    """One monitor connection. `on_event` gets each event's name and data, in order."""

    def __init__(self, node: str, on_event: EventSink) -> None:
        self._node = node
        self._on_event = on_event
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next = 0

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read the greeting and leave negotiation. Raises MachineFailed when QEMU hangs up."""
        self._writer = writer
        try:
            greeting = await reader.readline()
        except ConnectionError:
            greeting = b""
        if not greeting:
            raise self._gone()
        self._listening = asyncio.create_task(self._listen(reader), name=f"qmp {self._node}")
        await self.execute("qmp_capabilities")

    async def execute(self, command: str, **arguments: object) -> Any:
        """Run one command and return its answer. Raises QmpRefused, MachineFailed."""
        if self._writer is None or self._listening is None or self._listening.done():
            raise self._gone()
        self._next += 1
        number = self._next
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        line = json.dumps({"execute": command, "arguments": arguments, "id": number})
        try:
            self._writer.write(line.encode() + b"\n")
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Hang up; commands still waiting fail."""
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(json.loads(line))
        except ConnectionError:
            pass  # QEMU was killed with a command unread
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(self._gone())

    def _take(self, message: dict[str, Any]) -> None:
        if "event" in message:
            self._on_event(message["event"], message.get("data", {}))
            return
        answer = self._waiting.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        if "error" in message:
            error = QmpRefused(
                self._node, f"QEMU: {message['error']['desc']}", follow="read the node's qemu.log"
            )
            answer.set_exception(error)
        else:
            answer.set_result(message.get("return"))

    def _gone(self) -> MachineFailed:
        return MachineFailed(self._node, "QEMU's monitor hung up", follow="read the node's qemu.log")
