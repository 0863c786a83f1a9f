"""conmand records a console of the lab's BMC."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

from tests.contract.lab_bmc.conftest import PASSWORD, USER, Lab, require, until


@contextlib.asynccontextmanager
async def conmand(lab: Lab) -> AsyncIterator[Path]:
    """Run conmand on one console; gives the file that it records to."""
    require("conmand")
    record, config = lab.folder / "console.log", lab.folder / "conman.conf"
    config.write_text(
        f"server port={random.randrange(20_000, 32_000)}\nserver loopback=ON\n"
        f'server pidfile="{lab.folder}/pid"\nserver logfile="{lab.folder}/daemon.log"\n'
        f'console name="c" dev="ipmi:{lab.target}" log="{record}" ipmiopts="U:{USER},P:{PASSWORD}"\n'
    )
    config.chmod(0o600)
    process = await asyncio.create_subprocess_exec(
        "conmand",
        "-F",
        "-c",
        str(config),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield record
    finally:
        process.terminate()
        await process.wait()


async def test_conmand_records_every_byte_and_sees_that_its_console_was_taken(lab: Lab) -> None:
    lab.chassis.powered = True
    text = b"".join(b"%06d %s\n" % (number, b"y" * 50) for number in range(400))
    async with conmand(lab) as record:
        await until(lambda: lab.bmc.sol.owner is not None, within_s=10)
        lab.chassis.print(text)
        await until(lambda: record.exists() and text in record.read_bytes().replace(b"\r\n", b"\n"))
        await lab.ok(lab.ipmitool("sol", "deactivate"))
        await until(lambda: b"disconnected from" in record.read_bytes())
    assert lab.bmc.sol.dropped == 0
