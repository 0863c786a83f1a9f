"""A small rack on loopback, and programs that we did not write to drive it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.bmc import Bmc, BmcSpec, BmcUser, LightChassis, Rack, start_rack
from lab.errors import NoService

USER, PASSWORD = "admin", "lab-secret-twenty-by"
ADDRESS = "127.161.0.1"
PROGRAM_LIMIT_S = 50.0  # inside the limit of one test; a busy machine needs it


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    text: str
    errors: str


@dataclass
class Lab:
    """One BMC and how each program is pointed at it."""

    rack: Rack
    bmc: Bmc
    chassis: LightChassis
    folder: Path

    @property
    def target(self) -> str:
        return f"{ADDRESS}:{self.bmc.port}"

    def ipmitool(self, *words: str) -> list[str]:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        where = ("-H", ADDRESS, "-p", str(self.bmc.port))
        return ["ipmitool", "-I", "lanplus", *where, "-U", USER, "-f", str(secret), *words]

    def freeipmi(self, program: str, *words: str) -> list[str]:
        config = self.folder / "freeipmi.conf"
        driver = "" if program == "ipmiconsole" else "driver-type LAN_2_0\n"
        config.write_text(f"username {USER}\npassword {PASSWORD}\n{driver}")
        config.chmod(0o600)
        return [program, "--config-file", str(config), "-h", self.target, *words]

    async def run(self, argv: Sequence[str], limit_s: float = PROGRAM_LIMIT_S) -> Result:
        """Run a program to its end, with no more privacy than a folder for its caches."""
        require(argv[0])
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": str(self.folder), "TZ": "UTC"},
        )
        try:
            out, errors = await asyncio.wait_for(process.communicate(), limit_s)
        except TimeoutError:
            process.kill()
            await process.wait()
            pytest.fail(f"{argv[0]} did not end in {limit_s:g} s")
        return Result(process.returncode or 0, out.decode(errors="replace"), errors.decode(errors="replace"))

    async def ok(self, argv: Sequence[str], limit_s: float = PROGRAM_LIMIT_S) -> str:
        """Run a program that must succeed and return what it printed."""
        result = await self.run(argv, limit_s)
        assert result.code == 0, f"{argv[0]}: {result.code}: {result.errors}{result.text}"
        return result.text


class Terminal:
    """A program on a terminal of its own, as a person would have it."""

    def __init__(self, process: asyncio.subprocess.Process, descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.seen = bytearray()
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    async def expect(self, text: bytes, within_s: float = 8.0) -> None:
        """Return when the program has printed `text`; fail with what it did print."""
        try:
            async with asyncio.timeout(within_s):
                while text not in self.seen:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pytest.fail(f"{text!r} did not appear; seen: {bytes(self.seen[-500:])!r}")

    def type(self, data: bytes) -> None:
        os.write(self._descriptor, data)

    async def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        os.close(self._descriptor)

    def _read(self) -> None:
        try:
            self.seen += os.read(self._descriptor, 65_536)
        except OSError:  # the other end is gone
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self._news.set()


@contextlib.asynccontextmanager
async def terminal(argv: Sequence[str], folder: Path) -> AsyncIterator[Terminal]:
    """Start a program on a pseudo terminal and end it with the block."""
    require(argv[0])
    ours, theirs = pty.openpty()
    environment = {**os.environ, "HOME": str(folder), "TERM": "vt100"}
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    screen = Terminal(process, ours)
    try:
        yield screen
    finally:
        await screen.close()


async def until(condition: Callable[[], bool], within_s: float = 8.0) -> None:
    """Return when `condition` holds; fail when it does not in time."""
    try:
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail("the awaited state did not come")


def require(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.fixture
async def make_lab(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Lab]]]:
    racks: list[Rack] = []

    async def make(**changes: Any) -> Lab:
        chassis = LightChassis("node-c", "LAB-C0001")
        users = (BmcUser(USER, PASSWORD),)
        changes.setdefault("reset_s", 1.0)
        rack = await _on_some_port(chassis, users, changes)
        racks.append(rack)
        return Lab(rack, rack.bmc("node-c"), chassis, tmp_path)

    yield make
    for rack in racks:
        await rack.close()


@pytest.fixture
async def lab(make_lab: Callable[..., Awaitable[Lab]]) -> Lab:
    return await make_lab()


async def _on_some_port(chassis: LightChassis, users: tuple[BmcUser, ...], changes: dict[str, Any]) -> Rack:
    """Take a port below 32768: libipmiconsole keeps ports in a signed 16-bit number."""
    while True:
        spec = BmcSpec(chassis, ADDRESS, users, port=random.randrange(20_000, 32_000), **changes)
        with contextlib.suppress(NoService):
            return await start_rack([spec])
