"""The rack controller's power driver works a BMC with FreeIPMI, as MAAS does."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lab.bmc import BmcSpec, BmcUser, LightChassis, start_rack
from lab.maas import IpmiPower, PowerError, PowerState, PowerTarget

PASSWORD = "lab-word-of-power"
TARGET = PowerTarget(
    "4xk7ra", "lab-n01", None, "ipmi", address="127.62.0.1", user="maas", password=PASSWORD, cipher_suite="3"
)

pytestmark = pytest.mark.skipif(shutil.which("ipmipower") is None, reason="FreeIPMI is not installed")


Bench = tuple[LightChassis, PowerTarget]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A machine behind a BMC, and what MAAS knows of it."""
    machine = LightChassis("lab-n01", "LAB-0001")
    users = (BmcUser("maas", PASSWORD),)
    spec = BmcSpec(chassis=machine, host="127.62.0.1", port=0, users=users, power_cycle_s=0.05)
    rack = await start_rack([spec])
    yield machine, dataclasses.replace(TARGET, address=f"127.62.0.1:{rack.bmc('lab-n01').port}")
    await rack.close()


async def test_boots_from_the_network_once_and_then_from_the_disk(bench: Bench) -> None:
    chassis, target = bench
    power = IpmiPower()
    assert await power.query(target) is PowerState.OFF
    await power.on(target, pxe=True)
    assert await power.query(target) is PowerState.ON
    await power.off(target)
    assert await power.query(target) is PowerState.OFF
    await power.on(target, pxe=False)
    assert chassis.boots == ["pxe", None]


async def test_cycles_a_machine_that_is_on(bench: Bench) -> None:
    chassis, target = bench
    power = IpmiPower()
    await power.on(target, pxe=False)
    await power.on(target, pxe=True)
    async with asyncio.timeout(5):
        while len(chassis.boots) < 2:
            await asyncio.sleep(0.01)
    assert chassis.boots == [None, "pxe"]


async def test_says_why_a_bmc_did_not_obey(bench: Bench) -> None:
    _, target = bench
    with pytest.raises(PowerError, match=r"power query of lab-n01: .*password invalid") as caught:
        await IpmiPower().query(dataclasses.replace(target, password="wrong"))
    assert "wrong" not in str(caught.value)


async def test_gives_up_on_a_bmc_that_is_silent() -> None:
    silent = dataclasses.replace(TARGET, address="127.62.0.2")
    with pytest.raises(PowerError, match=r"no answer in 0.3 s"):
        await IpmiPower(seconds=0.3).on(silent, pxe=True)


async def test_passwords_reach_programs_in_a_private_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ipmipower"
    # Keeps its arguments, and the file's name, rights and content, then answers as the real one does.
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/argv\nenv > {tmp_path}/environment\n'
        f'config="${{1#--config-file=}}"\nstat -c %a "$config" > {tmp_path}/rights\n'
        f'cp "$config" {tmp_path}/config\necho "there: on"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert await IpmiPower().query(TARGET) is PowerState.ON
    assert PASSWORD not in (tmp_path / "argv").read_text()
    assert PASSWORD not in (tmp_path / "environment").read_text()
    assert PASSWORD in (tmp_path / "config").read_text()
    assert (tmp_path / "rights").read_text() == "600\n"
    assert PASSWORD not in repr(TARGET)
