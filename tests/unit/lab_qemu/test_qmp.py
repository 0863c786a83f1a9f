"""The monitor protocol against a server in memory."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lab.qemu.errors import MachineFailed, QmpRefused
from lab.qemu.qmp import Qmp


class Server:
    """QEMU's end of the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, message: dict[str, Any]) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(await self.reader.readline())
        return heard


Talk = tuple[Qmp, Server, list[tuple[str, dict[str, Any]]]]


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    """A connection past its negotiation."""
    ours, theirs = socket.socketpair()
    server = Server(*await asyncio.open_unix_connection(sock=theirs))
    events: list[tuple[str, dict[str, Any]]] = []
    qmp = Qmp("node-a", lambda name, data: events.append((name, data)))
    connecting = asyncio.create_task(qmp.connect(*await asyncio.open_unix_connection(sock=ours)))
    server.say({"QMP": {}})
    server.say({"return": {}, "id": (await server.hear())["id"]})
    await connecting
    yield qmp, server, events
    await qmp.close()
    server.writer.close()
    await server.writer.wait_closed()


async def test_gives_each_answer_to_its_question(talk: Talk) -> None:
    qmp, server, _ = talk
    first = asyncio.create_task(qmp.execute("first"))
    asked_first = await server.hear()
    second = asyncio.create_task(qmp.execute("second", word=1))
    asked_second = await server.hear()
    assert asked_second["arguments"] == {"word": 1}
    server.say({"return": "two", "id": asked_second["id"]})
    server.say({"return": "one", "id": asked_first["id"]})
    assert [await first, await second] == ["one", "two"]


async def test_passes_events_on_between_answers(talk: Talk) -> None:
    qmp, server, events = talk
    asking = asyncio.create_task(qmp.execute("query-status"))
    asked = await server.hear()
    server.say({"event": "RESET", "data": {"guest": True}})
    server.say({"event": "STOP"})
    server.say({"return": {}, "id": asked["id"]})
    await asking
    assert events == [("RESET", {"guest": True}), ("STOP", {})]


async def test_a_refusal_carries_qemus_words(talk: Talk) -> None:
    qmp, server, _ = talk
    asking = asyncio.create_task(qmp.execute("explode"))
    asked = await server.hear()
    server.say({"error": {"class": "CommandNotFound", "desc": "no such command"}, "id": asked["id"]})
    with pytest.raises(QmpRefused, match="no such command"):
        await asking


async def test_a_hang_up_fails_what_waits_and_what_comes_later(talk: Talk) -> None:
    qmp, server, _ = talk
    asking = asyncio.create_task(qmp.execute("query-status"))
    await server.hear()
    server.writer.close()
    with pytest.raises(MachineFailed, match="hung up"):
        await asking
    with pytest.raises(MachineFailed, match="hung up"):
        await qmp.execute("query-status")


async def test_a_hang_up_in_place_of_a_greeting_is_a_failure() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    qmp = Qmp("node-a", lambda _name, _data: None)
    with pytest.raises(MachineFailed, match="hung up"):
        await qmp.connect(*await asyncio.open_unix_connection(sock=ours))
    await qmp.close()
