"""python-libmaas, written by others against MAAS, can use the lab's."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lab.maas import MaasServer
from tests.contract.lab_maas.wire import Wire

SCRIPT = Path(__file__).with_name("use_libmaas.py")


async def test_libmaas_logs_in_commissions_deploys_and_releases(imaginary: tuple[MaasServer, Wire]) -> None:
    server, wire = imaginary
    assert wire.user is not None
    asked = [server.url + "/", wire.user.name, wire.user.password, wire.user.api_key]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", str(SCRIPT)),
        *asked,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await child.communicate()
    assert child.returncode == 0, err.decode()
    assert out.decode() == "lab-n01 lab-n03"
    assert server.request_log["POST /MAAS/api/2.0/machines/?op=allocate"] == 1
