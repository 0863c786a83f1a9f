"""The serial line: real in both directions, and whole again after a system hung it up."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from lab.nodes.serial import SerialPort


class Sink:
    def __init__(self) -> None:
        self.data = b""
        self._more = asyncio.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self._more.set()

    async def until(self, end: bytes) -> bytes:
        async with asyncio.timeout(5):
            while not self.data.endswith(end):
                self._more.clear()
                await self._more.wait()
        return self.data


@pytest.fixture
async def port(tmp_path: Path) -> SerialPort:
    return SerialPort(tmp_path / "serial.log")


async def test_bytes_go_both_ways(port: SerialPort, tmp_path: Path) -> None:
    sink = Sink()
    port.attach(sink)
    os.write(port.terminal, b"login: \n")
    assert await sink.until(b"\n") == b"login: \r\n"
    port.typed(b"root")
    assert os.read(port.terminal, 16) == b"root"
    port.close()
    assert (tmp_path / "serial.log").read_bytes() == b"login: \r\n"


async def test_firmware_is_not_echoed_what_is_typed(port: SerialPort) -> None:
    sink = Sink()
    port.attach(sink)
    port.typed(b"\x1b[24~")
    port.emit("POST\n")
    assert sink.data == b"POST\r\n"
    port.close()


async def test_keys_typed_for_a_dead_system_do_not_reach_the_next(port: SerialPort) -> None:
    port.typed(b"halt\n")
    port.reset()
    os.set_blocking(port.terminal, False)
    with pytest.raises(BlockingIOError):
        os.read(port.terminal, 16)
    port.close()


async def test_a_line_nobody_reads_never_blocks_the_lab(port: SerialPort) -> None:
    for _ in range(64):
        port.typed(b"x" * 4096)
    port.close()
