"""One MAAS to hold to the contract: the lab's, and a real one where `tests/real/maas.py` names it."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

import pytest

from lab.maas import Delays, MaasConfig, MaasServer, StubPower, start_maas
from provision.maas.client import MaasClient
from provision.maas.errors import MaasNotFound
from provision.maas.model import Deployment, Machine, MachineStatus, NewMachine
from provision.maas.transport import Ambient, Limits
from provision.waiting import Pace, Seen, until

# What the suite makes in a real MAAS, and the only machines that it changes there, carry this name.
PREFIX = "muster-contract"
QUICK = Delays(0.0, 0.02, 0.02, 0.05, 0.02, 0.02, 0.02, 0.02, 0.02)


def power_at(address: str) -> dict[str, str]:
    """Return power parameters for a BMC that nobody has: the net is kept for examples."""
    return {"power_address": address, "power_user": "bringer", "power_pass": "not-a-secret"}


@dataclass(frozen=True)
class Key:
    """An API key that is not shown."""

    value: str = field(repr=False)

    def reveal(self) -> str:
        return self.value


@dataclass
class Target:
    """A MAAS under test, and what may be done to it. `lab` is None for a real one."""

    url: str
    key: Key
    client: MaasClient
    deployment: Deployment
    deadline_s: float
    lab: MaasServer | None = None
    machine: str | None = None  # host name of a real machine that may be wiped
    made: list[str] = field(default_factory=list)

    def connect(
        self, key: Key | None = None, *, ambient: Ambient | None = None, **limits: float
    ) -> MaasClient:
        """Return another client of the same MAAS, to be used with `async with`."""
        bounds = replace(Limits(call_timeout_s=60.0, deadline_s=60.0), **limits)  # type: ignore[arg-type]
        return MaasClient(self.url, key or self.key, limits=bounds, ambient=ambient)

    def new(self, **changes: object) -> NewMachine:
        """Describe a machine that nobody has."""
        token = secrets.token_hex(3)
        mac = ":".join(["02", "00", "5e", *(token[at : at + 2] for at in (0, 2, 4))])
        plain = NewMachine(
            hostname=f"{PREFIX}-{token}",
            macs=(mac,),
            power=power_at(f"192.0.2.{1 + int(token[:2], 16) % 254}"),
        )
        return replace(plain, **changes)  # type: ignore[arg-type]

    async def enlist(self, **changes: object) -> Machine:
        """Make a New machine; it is deleted at the end."""
        machine = await self.client.create(self.new(**changes))
        self.made.append(machine.system_id)
        return machine

    async def settled(self, system_id: str, *wanted: MachineStatus) -> Machine:
        """Wait for one of the statuses. Raises StageTimeout naming the last one seen."""

        async def look() -> Seen[Machine]:
            machine = await self.client.machine(system_id)
            return Seen(machine if machine.status in wanted else None, machine.status_name)

        names = " or ".join(status.name for status in wanted)
        pace = Pace(0.02, 0.2) if self.lab else Pace(2.0, 10.0)
        return await until(look, waited_for=names, deadline_s=self.deadline_s, pace=pace)

    async def ready(self) -> Machine:
        """Return a Ready machine: a new one in the lab, the named one in a real MAAS."""
        if self.lab is None:
            return await self._real_ready()
        machine = await self.enlist()
        await self.client.commission(machine.system_id)
        return await self.settled(machine.system_id, MachineStatus.READY)

    async def _real_ready(self) -> Machine:
        if self.machine is None:
            pytest.skip("no machine was named that may be wiped (--machine)")
        machine = await self.client.find(hostname=self.machine)
        assert machine is not None, f"MAAS does not know {self.machine}"
        if machine.status is not MachineStatus.READY:
            await self.client.release(machine.system_id, comment="contract suite")
        return await self.settled(machine.system_id, MachineStatus.READY)


@pytest.fixture(params=["lab", pytest.param("real", marks=pytest.mark.real)])
async def target(request: pytest.FixtureRequest) -> AsyncIterator[Target]:
    if request.param == "lab":
        async for one in _lab():
            yield one
    else:
        async for one in _real():
            yield one


async def _lab() -> AsyncIterator[Target]:
    config = MaasConfig(simulate=True, delays=QUICK)
    server = await start_maas(config, StubPower())
    key = Key(config.users[0].api_key)
    async with MaasClient(server.url, key, limits=Limits(deadline_s=10.0)) as client:
        yield Target(server.url, key, client, Deployment("custom", "debian-12"), 15.0, lab=server)
    await server.close()


async def _real() -> AsyncIterator[Target]:
    url, key = os.environ.get("MUSTER_REAL_MAAS_URL"), os.environ.get("MUSTER_REAL_MAAS_KEY")
    if not url or not key:
        pytest.skip("no real MAAS was named; see tests/real/maas.py")
    osystem, _, series = os.environ.get("MUSTER_REAL_MAAS_IMAGE", "").partition("/")
    machine = os.environ.get("MUSTER_REAL_MAAS_MACHINE")
    async with MaasClient(url, Key(key), limits=Limits(deadline_s=600.0)) as client:
        target = Target(url, Key(key), client, Deployment(osystem, series), 3600.0, machine=machine)
        yield target
        for system_id in target.made:
            await _delete(client, system_id)


async def _delete(client: MaasClient, system_id: str) -> None:
    try:
        machine = await client.machine(system_id)
        assert machine.hostname.startswith(PREFIX)
        await client.delete(system_id)
    except MaasNotFound:
        return


@pytest.fixture
def fault(target: Target) -> Callable[..., None]:
    """Set a fault of the lab's MAAS; a real one has none to set."""
    if target.lab is None:
        pytest.skip("faults are set in the lab only")
    return target.lab.set_fault
