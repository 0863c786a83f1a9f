"""Recording a console: exact bytes, marked gaps, through resets and thieves."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bmc import errors
from bmc.capability import PowerAction
from bmc.console.boots import boots
from bmc.console.record import Limits, Recorder
from bmc.console.store import Chunk, EventKind, entries
from bmc.drivers import connect
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import Session
from bmc.ipmi.sol import Sol

from .conftest import Backend, LabBackend, until

QUICK = Limits(keepalive_s=0.3)


def kept(folder: Path) -> bytes:
    return b"".join(entry.data for entry in entries(folder) if isinstance(entry, Chunk))


def kinds(recorder: Recorder) -> list[EventKind]:
    return [event.kind for event in recorder.events]


@asynccontextmanager
async def recording(
    backend: Backend, folder: Path, endpoint: Endpoint, *, steal: bool = False
) -> AsyncIterator[Recorder]:
    async with Recorder(backend.target, folder, endpoint=endpoint, steal=steal, limits=QUICK) as recorder:
        yield recorder


async def test_every_byte_reaches_the_disk(ipmi_backend: Backend, endpoint: Endpoint, tmp_path: Path) -> None:
    backend = ipmi_backend
    text = b"".join(b"%06d %s\r\n" % (line, b"\x1b[1m\xc3\xa4\xff" * (line % 9)) for line in range(400))
    async with recording(backend, tmp_path / "c", endpoint) as recorder:
        for at in range(0, len(text), 1000):
            await backend.say(text[at : at + 1000])
        await recorder.wait_for(b"000399", 10)
        await until(lambda: recorder.bytes_kept >= len(text))
    assert kept(tmp_path / "c") == text


@pytest.mark.parametrize(("fault", "percent"), [("loss", 5.0), ("duplicates", 50.0)])
async def test_a_bad_network_loses_and_doubles_nothing(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path, fault: str, percent: float
) -> None:
    chance = random.Random(7)
    text = chance.randbytes(12_000)
    async with recording(lab, tmp_path, endpoint) as recorder:
        lab.bmc.set_fault(fault, percent)
        for at in range(0, len(text), 60):
            await lab.say(text[at : at + 60])
            await asyncio.sleep(0.003)
        await until(lambda: recorder.bytes_kept >= len(text), 15)
        lab.bmc.clear_faults()
    assert hashlib.sha256(kept(tmp_path)).digest() == hashlib.sha256(text).digest()
    assert lab.bmc.sol.dropped == 0


async def test_a_reset_of_the_bmc_is_marked_and_survived(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path, endpoint) as recorder:
        await lab.say(b"before\r\n")
        await recorder.wait_for(b"before", 5)
        lab.bmc.cold_reset()
        await lab.say(b"heard by nobody\r\n")
        await until(lambda: kinds(recorder)[-1] is EventKind.RECOVERED, 15)
        await lab.say(b"after\r\n")
        await recorder.wait_for(b"after", 5)
        assert kinds(recorder)[1:] == [EventKind.ACTIVE, EventKind.LOST, EventKind.RECOVERED]
    assert kept(tmp_path) == b"before\r\nafter\r\n"


async def test_a_console_in_use_is_refused_and_left_alone(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path / "first", endpoint) as first:
        with pytest.raises(errors.Busy) as caught:
            async with recording(lab, tmp_path / "second", endpoint):
                pass
        assert caught.value.occupied is errors.Occupied.CONSOLE
        await lab.say(b"still mine")
        await first.wait_for(b"still mine", 5)


async def test_a_stolen_console_is_marked_and_taken_back_only_when_free(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path / "first", endpoint) as first:
        async with recording(lab, tmp_path / "thief", endpoint, steal=True) as thief:
            await until(lambda: EventKind.STOLEN in kinds(first))
            await lab.say(b"for the thief\r\n")
            await thief.wait_for(b"for the thief", 5)
            assert not first.active
        await until(lambda: first.active)
        await lab.say(b"mine again\r\n")
        await first.wait_for(b"mine again", 5)
    assert b"thief" not in kept(tmp_path / "first")


async def test_a_console_that_the_bmc_ends_without_a_word_is_opened_again(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path, endpoint) as recorder:
        lab.bmc.sol.reset(keep=True)
        await until(lambda: lab.bmc.sol.owner is not None)
        await lab.say(b"again")
        await recorder.wait_for(b"again", 5)
        assert kinds(recorder)[-1] is EventKind.RECOVERED


async def test_a_console_held_by_our_own_lost_session_is_taken_back(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    """The network fails for longer than we wait, and the BMC still holds our old session."""
    async with recording(lab, tmp_path, endpoint) as recorder:
        lab.bmc.set_fault("silent")
        await until(lambda: EventKind.LOST in kinds(recorder))
        lab.bmc.clear_faults()
        await until(lambda: recorder.active)
        await lab.say(b"back")
        await recorder.wait_for(b"back", 5)


async def test_records_boots_of_a_node_that_is_cycled(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path, endpoint) as recorder, connect(lab.target, endpoint=endpoint) as bmc:
        for _ in range(2):
            recorder.mark("power cycle")
            await bmc.set_power(PowerAction.CYCLE, wait_s=8)
            await recorder.wait_for(re.compile(rb"login: $"), 5)
    found = boots(tmp_path)
    assert [boot.number for boot in found] == [-1, 0]
    assert all(boot.data.count(b"login:") == 1 for boot in found)


async def test_names_the_cause_while_it_records(lab: LabBackend, endpoint: Endpoint, tmp_path: Path) -> None:
    async with recording(lab, tmp_path, endpoint) as recorder:
        assert recorder.cause() is None
        await lab.say(b"\x1b[31mKernel panic - not syncing: Attempted to kill init!\x1b[0m\r\n")
        await recorder.wait_for(b"kill init", 5)
        cause = recorder.cause()
    assert cause is not None
    assert (cause.id, cause.line) == ("kernel-panic", "Kernel panic - not syncing: Attempted to kill init!")


async def test_what_never_comes_is_said_so(lab: LabBackend, endpoint: Endpoint, tmp_path: Path) -> None:
    async with recording(lab, tmp_path, endpoint) as recorder:
        await lab.say(b"something else")
        with pytest.raises(errors.PatternNotSeen) as caught:
            await recorder.wait_for(b"login:", 0.3)
    assert caught.value.pattern == "login:"


async def test_text_that_came_before_the_question_is_found_and_once(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path, endpoint) as recorder:
        await lab.say(b"one two one")
        await until(lambda: recorder.bytes_kept == 11)
        assert await recorder.wait_for(b"one", 1) == b"one"
        assert await recorder.wait_for(b"one", 1) == b"one"
        with pytest.raises(errors.PatternNotSeen):
            await recorder.wait_for(b"one", 0.1)


async def test_a_full_disk_is_said_and_nothing_is_acknowledged(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(lab.target, tmp_path, endpoint=endpoint, limits=QUICK)
    await recorder.start()

    def full(_file: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    await lab.say(b"lost?")
    with pytest.raises(errors.RecordingFailed):
        await recorder.wait_for(b"lost?", 5)
    with pytest.raises(errors.RecordingFailed):
        await recorder.stop()
    monkeypatch.undo()
    async with recording(lab, tmp_path / "later", endpoint) as later:
        await later.wait_for(b"lost?", 5)


async def test_a_wrong_password_ends_the_start(lab: LabBackend, endpoint: Endpoint, tmp_path: Path) -> None:
    wrong = replace(lab.target, credential=replace(lab.target.credential, password="wrong"))
    with pytest.raises(errors.AuthRejected):
        await Recorder(wrong, tmp_path, endpoint=endpoint).start()


async def test_stopping_gives_console_and_session_back(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with recording(lab, tmp_path, endpoint):
        pass
    assert lab.bmc.sol.owner is None
    assert len(lab.bmc.sessions) == 0
    assert endpoint.counts.open == 0


async def test_a_dead_console_is_silent_and_not_an_error(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    lab.bmc.set_fault("sol-dead")
    async with recording(lab, tmp_path, endpoint) as recorder:
        await lab.say(b"nobody hears")
        await asyncio.sleep(0.8)  # two keep-alives
        assert recorder.active
    assert kept(tmp_path) == b""


async def test_sol_alone_on_a_session_is_exact(ipmi_backend: Backend, endpoint: Endpoint) -> None:
    backend = ipmi_backend
    session, got = Session(endpoint, backend.target), bytearray()
    await session.open()
    try:
        sol = Sol(session, got.extend)
        await sol.activate()
        await backend.say(b"x" * 3000 + b"y")
        await until(lambda: got.endswith(b"y"))
        await sol.deactivate()
    finally:
        await session.close()
    assert bytes(got) == b"x" * 3000 + b"y"
