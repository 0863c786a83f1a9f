"""Lab nodes with a fresh Debian, deployed through MAAS, on a net of their own; and a small site on four."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lab.spec import LabNet, NodeSpec, RackKind, node_spec
from provision.ansible import PlayEvent, PlayPool, PlayRequest, PlayResult, Transport
from provision.maas.client import MaasClient
from provision.maas.model import Deployment, Machine, MachineStatus, NewMachine
from provision.waiting import Pace, Seen, until

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"


def _free_net() -> LabNet:
    """Return a net that no lab of this machine uses; several may run tests at once."""
    free = [net for net in map(LabNet, range(100, 200)) if not Path("/sys/class/net", net.bridge).exists()]
    return random.SystemRandom().choice(free)  # the seed is the same in every worker


NET = _free_net()


@dataclass(frozen=True)
class Fresh:
    """A deployed node, and how plays and commands are run on it."""

    spec: NodeSpec
    key: Path
    folder: Path

    def play(
        self,
        playbook: Path,
        *,
        check: bool = False,
        groups: tuple[str, ...] = (),
        transport: Transport = Transport.SSH,
        **variables: object,
    ) -> tuple[PlayResult, list[PlayEvent]]:
        """Run a playbook and return how it went and what was seen."""
        request = self.request(playbook, check=check, groups=groups, **variables)
        return asyncio.run(self._play(replace(request, transport=transport)))

    def roles(self, *names: str, check: bool = False, **variables: object) -> PlayResult:
        """Run some roles, in this order."""
        place = self.folder / "playbooks"
        place.mkdir(exist_ok=True)
        for name in ("roles", "library", "filter_plugins"):
            if not (place / name).exists():
                (place / name).symlink_to(PLAYBOOKS / name)
        play = {"name": "Run roles", "hosts": "all", "gather_facts": False, "roles": list(names)}
        playbook = place / f"{'-'.join(names)}.yml"
        playbook.write_text(json.dumps([play]), encoding="utf-8")
        return self.play(playbook, check=check, **variables)[0]

    def request(
        self, playbook: Path, *, check: bool = False, groups: tuple[str, ...] = (), **variables: object
    ) -> PlayRequest:
        """Return what runs a playbook on this node."""
        return PlayRequest(
            playbook=playbook,
            node=self.spec.name,
            address=self.spec.address,
            user="ubuntu",
            key_file=self.key,
            known_hosts=self.folder / "known_hosts",
            artifacts=self.folder,
            extra_vars={"muster_rack": "lab", "muster_deploy": "d-1", **variables},
            groups=groups,
            check=check,
            timeout_s=840.0,
        )

    async def _play(self, request: PlayRequest) -> tuple[PlayResult, list[PlayEvent]]:
        seen: list[PlayEvent] = []
        async with PlayPool(1) as pool:
            return await pool.run_play(request, on_event=seen.append), seen

    def run(self, command: str, *, user: str = "ubuntu") -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node."""
        return subprocess.run(
            [*self._ssh(user), command], capture_output=True, text=True, timeout=240, check=False
        )

    def _ssh(self, user: str = "ubuntu") -> list[str]:
        options = [
            f"UserKnownHostsFile={self.folder}/known_hosts", "StrictHostKeyChecking=accept-new",
            "BatchMode=yes", "ConnectTimeout=30", "IdentitiesOnly=yes",
        ]  # fmt: skip
        words = [word for option in options for word in ("-o", option)]
        return ["ssh", "-i", str(self.key), *words, f"{user}@{self.spec.address}"]

    def put(self, data: bytes, path: str) -> None:
        """Write a file on the node."""
        done = subprocess.run(
            [*self._ssh(), f"sudo tee {path} > /dev/null"],
            input=data,
            capture_output=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def reboot(self) -> None:
        """Reboot the node and wait until its services are up or have failed."""
        before = self.read("cat /proc/sys/kernel/random/boot_id")
        self.run("sudo systemctl reboot")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            seen = self.run("cat /proc/sys/kernel/random/boot_id").stdout.strip()
            if seen and seen != before:
                break
            time.sleep(0.5)
        else:
            pytest.fail("the node did not come back within 120 s")
        self.read("timeout 60 systemctl is-system-running --wait || true")

    def kill_and_wait(self, *units: str) -> None:
        """Kill the main process of each unit as the kernel would, and wait until each runs anew."""
        script = (
            "for unit in {units}; do before=$(systemctl show $unit --property MainPID --value);"
            ' [ "$before" != 0 ] || {{ echo $unit does not run; exit 1; }};'
            " sudo kill -KILL $before;"
            " for _ in $(seq 120); do now=$(systemctl show $unit --property MainPID --value);"
            ' [ "$now" != 0 ] && [ "$now" != "$before" ] && continue 2; sleep 0.25; done;'
            " echo $unit did not come back; exit 1; done"
        ).format(units=" ".join(units))
        done = self.run(script)
        assert done.returncode == 0, done.stdout + done.stderr

    def read(self, command: str) -> str:
        """Run a shell command that must succeed; return what it printed."""
        done = self.run(command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@dataclass(frozen=True)
class Lab:
    """A lab that is up. `deploy` gives its nodes by number, each with a new system."""

    secrets: Path
    folders: pytest.TempPathFactory

    def deploy(self, *numbers: int) -> list[Fresh]:
        """Deploy nodes side by side."""

        async def all_of_them() -> None:
            await asyncio.gather(*(_deploy(spec, self.secrets) for spec in specs))

        specs = [node_spec(NET, RackKind.NAMESPACE, number) for number in numbers]
        asyncio.run(all_of_them())
        return [Fresh(spec, self.secrets / "ssh_key", self.folders.mktemp("node")) for spec in specs]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of six nodes: four for the site, two that tests deploy anew."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    state = tmp_path_factory.mktemp("lab")
    environment = {**os.environ, "MUSTER_LAB_NET": f"127.{NET.octet}", "MUSTER_STATE": str(state)}
    _lab(environment, "up", "--nodes", "6", "--racks", "lab")
    try:
        yield Lab(state / "lab" / "secrets", tmp_path_factory)
    finally:
        _lab(environment, "down", "--wipe")


@pytest.fixture(scope="session")
def fresh(lab: Lab) -> Callable[[int], Fresh]:
    """Give a node, 1 or 2, deployed anew at each call."""
    return lambda number: lab.deploy(number + 4)[0]


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


@pytest.fixture(scope="session")
def site(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A small site, configured once for all tests; see site.py."""
    from tests.roles.site import brought_up

    with brought_up(lab, tmp_path_factory.mktemp("site")) as made:
        yield made
