from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from lab.qemu import Assets, BootServer, QemuChassis, start_boot_server

FAKE_QEMU = Path(__file__).with_name("fake_qemu.py")
MAC = "52:54:00:77:02:01"
NOBODY = "http://127.0.0.1:9"  # the discard port: no MAAS is here


class Console:
    """What a chassis wrote to its serial port."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self._news = asyncio.Event()

    def take(self, data: bytes) -> None:
        self.seen += data
        self._news.set()

    async def shows(self, text: bytes, times: int = 1) -> None:
        """Return when `text` was written `times` times."""
        async with asyncio.timeout(10):
            while self.seen.count(text) < times:
                self._news.clear()
                await self._news.wait()

    def starts(self) -> list[list[str]]:
        """Return the arguments of each QEMU that was started."""
        lines = self.seen.decode().splitlines()
        return [json.loads(line.partition(" on ")[2]) for line in lines if line.startswith("power on ")]


def program(folder: Path, body: str) -> str:
    """Write an executable that runs `body` in this Python."""
    script = folder / "qemu"
    script.write_text(f"#!{sys.executable}\n{body}")
    script.chmod(0o755)
    return str(script)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    folder = tmp_path / "assets"
    folder.mkdir()
    made = Assets(folder)
    made.kernel.write_bytes(b"a kernel")
    made.initrd.write_bytes(b"an initrd")
    made.image.write_bytes(bytes(2 << 20))
    return made


@pytest.fixture
async def boot_server(assets: Assets) -> AsyncIterator[BootServer]:
    server = await start_boot_server(assets, NOBODY)
    yield server
    await server.close()


@pytest.fixture
async def chassis(assets: Assets, boot_server: BootServer, tmp_path: Path) -> AsyncIterator[QemuChassis]:
    made = QemuChassis(
        "lab-real-n01", "LAB-R01", MAC, "127.77.3.1", 22, tmp_path / "node", boot_server, assets,
        program=program(tmp_path, FAKE_QEMU.read_text()),
    )  # fmt: skip
    yield made
    await made.close()


@pytest.fixture
def console(chassis: QemuChassis) -> Console:
    made = Console()
    chassis.attach_serial(made.take)
    return made
