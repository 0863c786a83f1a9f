"""A site of imaginary nodes of any number: a MAAS that does its part in seconds, BMCs, and SSH to here.

    python -m benchmarks.light_site --nodes 16 --folder DIR     # serves until its input closes

Runs in a process of its own, so that killing or measuring the product does not touch it. Writes a
site and a state folder, prints one JSON line that says where, and answers on loopback:
`/report` tells what MAAS and every BMC were asked, `/fault?name=…` sets or lifts a fault of MAAS.
What stands for SSH runs commands on this machine: a stand-in for the network, not for the product.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from aiohttp import web

from lab.bmc import BmcSpec, BmcUser, Rack, start_rack
from lab.bmc.light import LightChassis
from lab.maas import MaasConfig, MaasServer, StubPower, User, start_maas
from lab.maas.config import Delays
from lab.maas.model.status import Status

_CHASSIS_CONTROL, _SET_BOOT = (0x00, 0x02), (0x00, 0x08)
_RUNS = frozenset({Status.COMMISSIONING, Status.DEPLOYING, Status.DEPLOYED})
# The command is the last word; it is run here, as the node would run it.
_SSH = """#!/bin/sh
for last; do :; done
exec /bin/sh -c "$last"
"""
_PLAY = """- name: Configure an imaginary node
  hosts: all
  gather_facts: false
  become: false
  tasks:
    - name: Say that nothing is to be done
      ansible.builtin.debug:
        msg: nothing
"""
_PROFILES = """profiles:
  light:
    vendor: Muster
    model: Imaginary node
    os_image: custom/debian-12
    playbook: {play}
    checks: [host.os]
    limits: {{os.releases: ["debian 12"]}}
"""


def names(count: int) -> list[str]:
    """Return the names of the site's nodes."""
    return [f"light-n{number:03}" for number in range(1, count + 1)]


async def serve(count: int, folder: Path, net: int, seconds: float) -> None:
    """Serve until standard input closes."""
    state = folder / "state"
    state.mkdir(parents=True, mode=0o700)
    key = ":".join(secrets.token_hex(9) for _ in range(3))
    password = secrets.token_hex(8)
    for name, text in (("key", key), ("password", password), ("ssh", "-")):
        (state / name).touch(mode=0o600)
        (state / name).write_text(text)
    delays = Delays(
        power=seconds / 10, commission=seconds, deploy=seconds, boot=seconds / 4, release=seconds / 4
    )
    config = MaasConfig(simulate=True, users=(User(api_key=key),), delays=delays)
    maas = await start_maas(config, StubPower())
    chassis = {name: LightChassis(name=name, serial=f"L-{name}") for name in names(count)}
    user = BmcUser("admin", password)
    rack = await start_rack(
        [
            BmcSpec(chassis=one, host=_address(net, number), users=(user,))
            for number, one in enumerate(chassis.values(), 1)
        ]
    )
    powering = asyncio.create_task(_power(maas, chassis))
    answers = await _answer(maas, rack)
    _write_site(folder, maas.url, net, count)
    sys.stdout.write(json.dumps({"report": answers}) + "\n")
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    try:
        await loop.run_in_executor(None, sys.stdin.read)
    finally:
        powering.cancel()
        await rack.close()
        await maas.close()


def _address(net: int, number: int) -> str:
    return f"127.{net}.{number // 250}.{number % 250 + 1}"


async def _power(maas: MaasServer, chassis: dict[str, LightChassis]) -> None:
    """Let the machines run where MAAS would have them run, so that their consoles say so."""
    turns: dict[str, int] = {}
    while True:
        for machine in list(maas.machines.values()):
            one = chassis[machine.hostname]
            if machine.status in _RUNS:
                if turns.get(machine.hostname) != machine.turn or not one.powered:
                    turns[machine.hostname] = machine.turn
                    await one.power_off()
                    await one.power_on(boot_device=None)
            elif one.powered:
                await one.power_off()
        await asyncio.sleep(0.2)


async def _answer(maas: MaasServer, rack: Rack) -> str:
    async def report(_: web.Request) -> web.Response:
        by_node = {
            bmc.name: {
                "commands": bmc.log.total,
                "power": bmc.log.count(*_CHASSIS_CONTROL),
                "boot": bmc.log.count(*_SET_BOOT),
            }
            for bmc in rack
        }
        machines = {m.hostname: {"id": m.system_id, "status": m.status.label} for m in maas.machines.values()}
        return web.json_response({"maas": dict(maas.request_log), "bmc": by_node, "machines": machines})

    async def fault(request: web.Request) -> web.Response:
        value = request.query.get("value")
        on = request.query.get("on", "1") == "1"
        maas.set_fault(request.query["name"], on=on, value=float(value) if value else None)
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/report", report)
    app.router.add_get("/fault", fault)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"


def _write_site(folder: Path, maas: str, net: int, count: int) -> None:
    site = folder / "site"
    site.mkdir()
    play = folder / "play.yml"
    play.write_text(_PLAY)
    (site / "site.yaml").write_text(
        f'name: light\nmaas: {{url: "{maas}", key: "file:key"}}\n'
        'ssh: {user: nobody, key: "file:ssh", become: false}\n'
        'credentials: {bmc: {username: admin, password: "file:password"}}\nspare_share: 0.0\n'
    )
    (site / "profiles.yaml").write_text(_PROFILES.format(play=play))
    racks = ["racks:"]
    for number, name in enumerate(names(count), 1):
        if number % 32 == 1:
            racks += [
                f"  rack{number // 32 + 1:02}:",
                f"    controller: rackd{number // 128 + 1}",
                "    profile: light",
                "    bmc: {credential: bmc, protocol: ipmi}",
                "    nodes:",
            ]
        address = _address(net, number)
        mac = f"02:4c:00:00:{number >> 8:02x}:{number & 255:02x}"
        racks.append(
            f'      {name}: {{bmc: "{address}", serial: "L-{name}", mac: "{mac}", address: "{address}"}}'
        )
    (site / "racks.yaml").write_text("\n".join(racks) + "\n")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(_SSH)
    (programs / "ssh").chmod(0o755)


@dataclass
class LightSite:
    """A light site in a process of its own. `with LightSite(16, folder) as site`."""

    count: int
    folder: Path
    net: int = 93
    seconds: float = 1.0
    environment: dict[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[str] | None = None
    _report: str = ""

    def __enter__(self) -> LightSite:
        words = ["--nodes", self.count, "--folder", self.folder, "--net", self.net, "--seconds", self.seconds]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.light_site", *map(str, words)],
            cwd=Path(__file__).resolve().parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the light site did not come up; it said why above")
        self._report = json.loads(line)["report"]
        self.environment = {
            **os.environ,
            "MUSTER_SITE": str(self.folder / "site"),
            "MUSTER_STATE": str(self.folder / "state"),
            "MUSTER_WHO": "tester",
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
        }
        return self

    def __exit__(self, *_exc: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """The process that serves."""
        assert self._process is not None
        return self._process.pid

    def report(self) -> dict[str, Any]:
        """Return what MAAS and the BMCs were asked so far."""
        with urlopen(f"{self._report}/report", timeout=30) as answer:
            told: dict[str, Any] = json.load(answer)
        return told

    def fault(self, name: str, *, on: bool = True, value: float | None = None) -> None:
        """Set or lift a fault of MAAS."""
        query = {"name": name, "on": "1" if on else "0", **({"value": value} if value else {})}
        with urlopen(f"{self._report}/fault?{urlencode(query)}", timeout=30):
            pass


def operations(report: dict[str, Any]) -> dict[str, Counter[str]]:
    """Return how often MAAS was asked for each operation, by node."""
    hosts = {machine["id"]: name for name, machine in report["machines"].items()}
    found: dict[str, Counter[str]] = {name: Counter() for name in hosts.values()}
    for request, times in report["maas"].items():
        path, _, operation = request.partition("?op=")
        for system_id, host in hosts.items():
            if f"/{system_id}/" in path and operation:
                found[host][operation] += times
    return found


def main() -> int:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--net", type=int, default=93)
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    asyncio.run(serve(asked.nodes, asked.folder, asked.net, asked.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
