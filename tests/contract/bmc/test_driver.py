"""What every BMC must do for us, the same tests against each backend."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from bmc.capability import BootTarget, PowerAction, PowerState
from bmc.drivers import connect
from bmc.errors import CommandRefused, PowerNotReached
from bmc.ipmi.endpoint import Endpoint
from lab.bmc.bmc import Identify

from .conftest import SERIAL, Backend, LabBackend, MakeLab


async def test_says_who_it_is(backend: Backend, endpoint: Endpoint) -> None:
    async with connect(backend.target, endpoint=endpoint) as bmc:
        identity = await bmc.identity()
    assert identity.protocol == backend.target.protocol
    assert identity.serial == SERIAL
    assert identity.manufacturer
    assert identity.firmware
    assert endpoint.counts.closed == 1


async def test_power_follows_every_action(backend: Backend, endpoint: Endpoint) -> None:
    async with connect(backend.target, endpoint=endpoint) as bmc:
        for action, wanted in (
            (PowerAction.OFF, PowerState.OFF),
            (PowerAction.OFF, PowerState.OFF),
            (PowerAction.ON, PowerState.ON),
            (PowerAction.ON, PowerState.ON),
            (PowerAction.CYCLE, PowerState.ON),
        ):
            assert await bmc.set_power(action, wait_s=8) is wanted
            assert await bmc.power_state() is wanted


async def test_reads_every_sensor(backend: Backend, endpoint: Endpoint) -> None:
    async with connect(backend.target, endpoint=endpoint) as bmc:
        readings = await bmc.sensors()
    assert len(readings) >= (backend.sensors or 10)
    analog = [reading for reading in readings if reading.value is not None]
    assert all(reading.unit for reading in analog)
    assert any(reading.unit == "°C" and 0 < (reading.value or 0) < 100 for reading in analog)
    assert all(reading.health == "ok" for reading in analog)


async def test_reads_the_event_log_and_clears_it(backend: Backend, endpoint: Endpoint) -> None:
    async with connect(backend.target, endpoint=endpoint) as bmc:
        before = await bmc.sel()
        assert before
        assert all(entry.raw and entry.event for entry in before)
        await bmc.clear_sel()
        after = await bmc.sel()
    assert len(after) <= 1  # some log the clearing itself


async def test_reads_the_inventory(backend: Backend, endpoint: Endpoint) -> None:
    async with connect(backend.target, endpoint=endpoint) as bmc:
        fru = await bmc.fru()
    assert any(SERIAL in fields.values() for fields in fru.values())


async def test_blinks_the_locator(lab: LabBackend, endpoint: Endpoint) -> None:
    async with connect(lab.target, endpoint=endpoint) as bmc:
        await bmc.identify(on=True, seconds=5)
        assert lab.bmc.identify is Identify.TIMED
        await bmc.identify(on=True, seconds=0)
        assert lab.bmc.identify is Identify.ON
        await bmc.identify(on=False)
    assert lab.bmc.identify is Identify.OFF


async def test_resets_without_cutting_the_power(lab: LabBackend, endpoint: Endpoint) -> None:
    boots = len(lab.chassis.boots)
    async with connect(lab.target, endpoint=endpoint) as bmc:
        assert await bmc.set_power(PowerAction.RESET, wait_s=5) is PowerState.ON
        await bmc.set_power(PowerAction.OFF, wait_s=5)
        with pytest.raises(CommandRefused):
            await bmc.set_power(PowerAction.RESET, wait_s=5)
    assert len(lab.chassis.boots) == boots + 1


async def test_asks_the_operating_system_to_go_down(lab: LabBackend, endpoint: Endpoint) -> None:
    async with connect(lab.target, endpoint=endpoint) as bmc:
        assert await bmc.set_power(PowerAction.SOFT, wait_s=5) is PowerState.OFF


async def test_says_when_power_does_not_follow(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("power-ignored")
    async with connect(lab.target, endpoint=endpoint) as bmc:
        with pytest.raises(PowerNotReached) as caught:
            await bmc.set_power(PowerAction.OFF, wait_s=0.5)
    assert (caught.value.wanted, caught.value.node) == ("off", "node-k")


async def test_knows_the_thresholds_and_what_passed_them(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.sensors.force("Inlet Temp", 60)
    async with connect(lab.target, endpoint=endpoint) as bmc:
        inlet = next(reading for reading in await bmc.sensors() if reading.name == "Inlet Temp")
        events = [entry for entry in await bmc.sel() if entry.sensor == "Inlet Temp"]
    assert inlet.health in {"critical", "failed"}
    assert inlet.thresholds["upper critical"] < 60
    assert any("threshold" in entry.event and entry.severity == "critical" for entry in events)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("uefi", [False, True])
@pytest.mark.parametrize("device", list(BootTarget))
async def test_boot_device_is_held_as_set(
    lab: LabBackend, endpoint: Endpoint, device: BootTarget, uefi: bool, persistent: bool
) -> None:
    async with connect(lab.target, endpoint=endpoint) as bmc:
        held = await bmc.set_boot(device, uefi=uefi, persistent=persistent)
        assert (held.target, held.uefi, held.persistent, held.valid) == (device, uefi, persistent, True)
        assert await bmc.boot_setting() == held


async def test_boot_device_outlives_the_minute_that_the_specification_gives_it(
    make_lab: MakeLab, endpoint: Endpoint
) -> None:
    lab = await make_lab(boot_flag_timeout_s=0.05)
    async with connect(lab.target, endpoint=endpoint) as bmc:
        await bmc.set_boot(BootTarget.PXE)
        await asyncio.sleep(0.1)
        assert (await bmc.boot_setting()).valid


async def test_an_override_for_one_boot_is_used_once(lab: LabBackend, endpoint: Endpoint) -> None:
    async with connect(lab.target, endpoint=endpoint) as bmc:
        await bmc.set_boot(BootTarget.PXE)
        await bmc.set_power(PowerAction.CYCLE, wait_s=8)
        await bmc.set_power(PowerAction.CYCLE, wait_s=8)
    assert lab.chassis.boots[-2:] == ["pxe", None]


async def test_pyghmi_agrees(ipmi_backend: Backend, endpoint: Endpoint) -> None:
    """The same BMC read by a client that we did not write, in a process of its own."""
    backend = ipmi_backend
    script = f"""
import json, sys
from pyghmi.ipmi.command import Command
bmc = Command({backend.target.host!r}, sys.argv[1], sys.argv[2], port={backend.target.port})
sensors = {{r.name: r.value for r in bmc.get_sensor_data()}}
events = len(list(bmc.get_event_log()))
print(json.dumps({{"power": bmc.get_power()["powerstate"], "sensors": sensors, "sel": events}}))
"""
    credential = backend.target.credential
    async with connect(backend.target, endpoint=endpoint) as bmc:
        ours = {reading.name: reading.value for reading in await bmc.sensors()}
        power, events = await bmc.power_state(), await bmc.sel()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, credential.username, credential.password, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    theirs = json.loads(said)
    assert theirs["power"] == power
    assert theirs["sel"] == len(events)
    assert set(theirs["sensors"]) == set(ours)
    for name, value in theirs["sensors"].items():
        assert ours[name] == pytest.approx(value, rel=0.05) if value is not None else ours[name] is None
