from __future__ import annotations

import asyncio

import pytest

from lab.maas import MaasConfig, StubPower
from lab.maas.faults import Faults
from lab.maas.life.conductor import Conductor
from lab.maas.model.machine import Interface, Machine
from lab.maas.model.region import new_region


class FakeClock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.present = 1_772_532_000.0

    def time(self) -> float:
        return self.present

    async def sleep(self, seconds: float) -> None:
        self.present += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ctl(clock: FakeClock) -> Conductor:
    config = MaasConfig()
    region = new_region(config, clock.time())
    return Conductor(config, region, clock, StubPower(), Faults(), asyncio.Semaphore(4))


@pytest.fixture
def machine(ctl: Conductor) -> Machine:
    """A New machine with two ports."""
    return add(ctl, "lab-n01", "02:4c:41:42:00:01", "02:4c:41:42:01:01")


def add(ctl: Conductor, hostname: str, *macs: str) -> Machine:
    made = Machine(ctl.region.fresh_system_id(), hostname, ctl.now(), power_type="ipmi")
    made.interfaces = [
        Interface(ctl.region.number("interface"), f"eth{number}", mac) for number, mac in enumerate(macs)
    ]
    ctl.region.machines[made.system_id] = made
    return made
