"""A lab node with a fresh Debian, deployed through MAAS, on a net of its own."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.spec import LabNet, NodeSpec, RackKind, node_spec
from provision.ansible import PlayEvent, PlayPool, PlayRequest, PlayResult
from provision.maas.client import MaasClient
from provision.maas.model import Deployment, Machine, MachineStatus, NewMachine
from provision.waiting import Pace, Seen, until

ROOT = Path(__file__).resolve().parents[2]


def _free_net() -> LabNet:
    """Return a net that no lab of this machine uses; several may run tests at once."""
    free = [net for net in map(LabNet, range(100, 200)) if not Path("/sys/class/net", net.bridge).exists()]
    return random.choice(free)


NET = _free_net()


@dataclass(frozen=True)
class Fresh:
    """A deployed node, and how plays and commands are run on it."""

    spec: NodeSpec
    key: Path
    folder: Path

    def play(
        self, playbook: Path, *, check: bool = False, **variables: object
    ) -> tuple[PlayResult, list[PlayEvent]]:
        """Run a playbook and return how it went and what was seen."""
        request = PlayRequest(
            playbook=playbook,
            node=self.spec.name,
            address=self.spec.address,
            user="ubuntu",
            key_file=self.key,
            known_hosts=self.folder / "known_hosts",
            artifacts=self.folder,
            extra_vars={"muster_rack": "lab", "muster_deploy": "d-1", **variables},
            check=check,
        )
        return asyncio.run(self._play(request))

    async def _play(self, request: PlayRequest) -> tuple[PlayResult, list[PlayEvent]]:
        seen: list[PlayEvent] = []
        async with PlayPool(1) as pool:
            return await pool.run_play(request, on_event=seen.append), seen

    def run(self, command: str, *, user: str = "ubuntu") -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node."""
        options = [
            f"UserKnownHostsFile={self.folder}/known_hosts", "StrictHostKeyChecking=accept-new",
            "BatchMode=yes", "ConnectTimeout=5", "IdentitiesOnly=yes",
        ]  # fmt: skip
        words = [word for option in options for word in ("-o", option)]
        target = f"{user}@{self.spec.address}"
        return subprocess.run(
            ["ssh", "-i", str(self.key), *words, target, command],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def read(self, command: str) -> str:
        """Run a shell command that must succeed; return what it printed."""
        done = self.run(command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Fresh]]:
    """Give the lab node of that number, 1 or 2, deployed anew at each call."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    state = tmp_path_factory.mktemp("lab")
    environment = {**os.environ, "MUSTER_LAB_NET": f"127.{NET.octet}", "MUSTER_STATE": str(state)}
    _lab(environment, "up", "--nodes", "2", "--racks", "lab")
    secrets = state / "lab" / "secrets"

    def deploy(number: int) -> Fresh:
        spec = node_spec(NET, RackKind.NAMESPACE, number)
        asyncio.run(_deploy(spec, secrets))
        return Fresh(spec, secrets / "ssh_key", tmp_path_factory.mktemp("node"))

    try:
        yield deploy
    finally:
        _lab(environment, "down", "--wipe")


def _lab(environment: Mapping[str, str], *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


class _FileKey:
    def __init__(self, path: Path) -> None:
        self._path = path

    def reveal(self) -> str:
        return self._path.read_text(encoding="utf-8")


async def _deploy(spec: NodeSpec, secrets: Path) -> None:
    async with MaasClient(NET.maas_url, _FileKey(secrets / "maas-key")) as maas:
        machine = await maas.find(mac=spec.mac) or await _enlist(maas, spec, secrets)
        if machine.status is MachineStatus.NEW:
            await maas.commission(machine.system_id)
        elif machine.status is not MachineStatus.READY:
            await maas.release(machine.system_id)
        await _settled(maas, machine.system_id, MachineStatus.READY)
        await maas.deploy(machine.system_id, Deployment("custom", "debian-12"))
        await _settled(maas, machine.system_id, MachineStatus.DEPLOYED)


async def _enlist(maas: MaasClient, spec: NodeSpec, secrets: Path) -> Machine:
    power = {
        "power_address": spec.bmc_host,
        "power_user": "admin",
        "power_pass": (secrets / "bmc-password").read_text(encoding="utf-8").strip(),
        "cipher_suite_id": "17",
    }
    return await maas.create(NewMachine(spec.name, (spec.mac,), power=power))


async def _settled(maas: MaasClient, system_id: str, wanted: MachineStatus) -> None:
    async def look() -> Seen[Machine]:
        machine = await maas.machine(system_id)
        assert not machine.failed, machine.status_message
        return Seen(machine if machine.status is wanted else None, machine.status_name)

    await until(look, waited_for=wanted.name, deadline_s=180, pace=Pace(0.3, 2.0))
