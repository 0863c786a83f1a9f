"""A real machine's serial line behind a BMC that we did not write: QEMU on Debian's ipmi_sim."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bmc.capability import BmcTarget, Credential, PowerAction, PowerState
from bmc.console.boots import boots
from bmc.console.picture import png
from bmc.console.record import Recorder
from bmc.console.render import screen, screen_text
from bmc.console.store import Chunk, entries
from bmc.drivers import connect
from bmc.ipmi.endpoint import Endpoint

pytestmark = [pytest.mark.qemu, pytest.mark.timeout(180)]

MACHINE = (
    "qemu-system-x86_64 -accel tcg -m 64 -machine pc,graphics=off -display none -monitor none -nic none"
    " -no-user-config -pidfile {folder}/qemu.pid"
    " -chardev socket,id=ipmi0,host=127.0.0.1,port={vm},reconnect=2"
    " -device ipmi-bmc-extern,id=bmc0,chardev=ipmi0 -device isa-ipmi-kcs,bmc=bmc0"
    " -chardev socket,id=s0,host=127.0.0.1,port={serial},server=on,wait=on,logfile={folder}/reference"
    " -serial chardev:s0"
)


@dataclass(frozen=True, slots=True)
class Machine:
    target: BmcTarget
    folder: Path

    @property
    def reference(self) -> bytes:
        """What QEMU itself says that the machine wrote."""
        path = self.folder / "reference"
        return path.read_bytes() if path.exists() else b""


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def machine(folder: Path) -> AsyncIterator[Machine]:
    for program in ("ipmi_sim", "qemu-system-x86_64"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    port, serial, vm = free_port(socket.SOCK_DGRAM), *(free_port(socket.SOCK_STREAM) for _ in range(2))
    command = MACHINE.format(folder=folder, vm=vm, serial=serial)
    (folder / "lan.conf").write_text(
        f"""name "node-q"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid 6f9d2a6e0f0e4c369c0b5a1d70b3f2c5
  endlan
  serial 15 127.0.0.1 {vm} codec VM
  startcmd "{command}"
  startnow false
  poweroff_wait 2
  kill_wait 1
  sol "tcp:127.0.0.1:{serial}" 115200 history=65000
  user 1 true "" "none" user 10 none md2 md5 straight
  user 2 true "admin" "secret" admin 10 none md2 md5 straight
"""
    )
    (folder / "node.emu").write_text(
        "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x001291 0x0f02\nmc_enable 0x20\n"
    )
    words = ("-c", "lan.conf", "-f", "node.emu", "-s", "state", "-n")
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "ipmi_sim", *words, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
        )
    target = BmcTarget(
        "node-q", "127.0.0.1", Credential("admin", "secret"), protocol="ipmi", port=port, suites=(3,)
    )
    try:
        yield Machine(target, folder)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        with contextlib.suppress(OSError, ValueError):  # its machine outlives ipmi_sim
            os.kill(int((folder / "qemu.pid").read_text()), signal.SIGKILL)


async def test_firmware_is_recorded_to_the_byte_over_two_boots(tmp_path: Path) -> None:
    endpoint = Endpoint()
    async with machine(tmp_path) as real:
        recorder = Recorder(real.target, tmp_path / "console", endpoint=endpoint)
        await recorder.start()
        async with connect(real.target, endpoint=endpoint) as bmc:
            for _ in range(2):
                recorder.mark("power on")
                assert await bmc.set_power(PowerAction.ON, wait_s=20) is PowerState.ON
                await recorder.wait_for(re.compile(rb"SeaBIOS \(version"), 60)
                await recorder.wait_for(b"No bootable device", 60)
                assert await bmc.set_power(PowerAction.OFF, wait_s=20) is PowerState.OFF
        cause = recorder.cause()
        await recorder.stop()
        kept = b"".join(entry.data for entry in entries(tmp_path / "console") if isinstance(entry, Chunk))
        last = real.reference  # QEMU begins its log anew with each start
    await endpoint.aclose()
    found = boots(tmp_path / "console")
    assert [boot.number for boot in found] == [-1, 0]
    assert last
    assert found[-1].data == last[: len(found[-1].data)]
    assert kept.count(b"No bootable device") == 2
    assert cause is not None
    assert cause.id == "no-bootable-device"
    shown = screen(found[-1].entries)
    assert "SeaBIOS" in screen_text(shown)
    (tmp_path / "screen.png").write_bytes(png(shown))
