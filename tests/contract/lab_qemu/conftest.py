"""One QEMU node behind a BMC, brought up by a MAAS: every part of the lab, and OpenSSH."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from lab.bmc import BmcSpec, BmcUser, start_rack
from lab.errors import Refused
from lab.maas import IpmiPower, MaasConfig, MaasServer, User, start_maas
from lab.qemu import Assets, BootServer, QemuChassis, prepare_assets, start_boot_server
from lab.spec import cache_folder
from tests.contract.lab_maas.wire import Wire

BMC_HOST, SSH_HOST = "127.78.202.1", "127.78.203.1"
PASSWORD = "lab-secret-of-qemu"
MAC, SERIAL = "52:54:00:78:02:01", "LAB-R01"


@dataclass
class Bench:
    """The node, its BMC's port, and MAAS."""

    node: QemuChassis
    bmc_port: int
    boot_server: BootServer
    maas: MaasServer
    wire: Wire
    folder: Path
    key: Path

    @property
    def console(self) -> bytes:
        """Everything that the node wrote to its serial port since it was made."""
        record = self.node.state_dir / "serial.log"
        return record.read_bytes() if record.exists() else b""

    def ipmitool(self, *words: str) -> list[str]:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        where = ("-H", BMC_HOST, "-p", str(self.bmc_port), "-U", "admin", "-f", str(secret))
        return ["ipmitool", "-I", "lanplus", "-C", "17", *where, *words]

    async def greeted(self, within_s: float) -> None:
        """Return when the node's sshd greets; MAAS says Deployed as soon as the system starts."""
        async with asyncio.timeout(within_s):
            while True:
                reader, writer = await asyncio.open_connection(SSH_HOST, self.node.ssh_port)
                with contextlib.suppress(ConnectionError):
                    greeting = await reader.readline()
                    if greeting.startswith(b"SSH-2.0-"):
                        break
                writer.close()
                await asyncio.sleep(0.5)
        writer.close()

    async def ssh(self, command: str) -> str:
        """Run a command on the node, which must succeed, and return what it printed."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectTimeout=60")
        words = [word for option in (*options, "BatchMode=yes", "LogLevel=ERROR") for word in ("-o", option)]
        where = (*words, "-i", str(self.key), "-p", str(self.node.ssh_port), f"ubuntu@{SSH_HOST}")
        return await run("ssh", *where, command)


async def run(*argv: str) -> str:
    """Run a program that must succeed and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, f"{argv[0]}: {process.returncode}: {errors.decode()}{out.decode()}"
    return out.decode()


async def until(condition: Callable[[], bool], what: str, within_s: float) -> None:
    """Return when `condition` holds; fail, naming it, when it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {within_s:g} s until {what}")
        await asyncio.sleep(0.05)


@pytest.fixture
async def assets() -> Assets:
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("QEMU is not installed")
    try:
        return await prepare_assets(cache_folder())
    except Refused as exc:
        pytest.skip(str(exc))


@pytest.fixture
async def bench(assets: Assets, tmp_path: Path) -> AsyncIterator[Bench]:
    key = tmp_path / "key"
    await run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    public = key.with_suffix(".pub").read_text().strip()
    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        config = MaasConfig(ssh_keys=(public,), node_timeout=300.0)
        maas = await start_maas(config, IpmiPower())
        stack.push_async_callback(maas.close)
        boot_server = await start_boot_server(assets, maas.root)
        stack.push_async_callback(boot_server.close)
        ssh_port = 22 if os.geteuid() == 0 else 2222
        node = QemuChassis(
            "lab-real-n01", SERIAL, MAC, SSH_HOST, ssh_port, tmp_path / "node", boot_server, assets
        )
        stack.push_async_callback(node.close)
        users = (BmcUser("admin", PASSWORD),)
        rack = await start_rack([BmcSpec(chassis=node, host=BMC_HOST, port=0, users=users)])
        stack.push_async_callback(rack.close)
        wire = Wire(session, maas.url, User())
        yield Bench(node, rack.bmc(node.name).port, boot_server, maas, wire, tmp_path, key)
