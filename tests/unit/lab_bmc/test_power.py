"""Chassis commands: power, boot override, identify light, watchdog."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.unit.lab_bmc.conftest import Bench, Console, until

MakeBench = Callable[..., Bench]
OFF, ON, CYCLE, RESET, DIAGNOSE, SOFT = range(6)


def power(console: Console, action: int) -> bytes:
    return console.command(0x00, 0x02, bytes((action,)))


def set_flags(console: Console, first: int, device: int) -> bytes:
    return console.command(0x00, 0x08, bytes((5, first, device << 2, 0, 0, 0)))


def flags(console: Console) -> bytes:
    answer = console.command(0x00, 0x09, b"\x05\x00\x00")
    assert answer[:3] == b"\x00\x01\x05"
    return answer[3:]


async def test_power_follows_the_commands(bench: Bench) -> None:
    console = bench.login()
    for action, powered in ((ON, True), (OFF, False), (ON, True), (SOFT, False)):
        assert power(console, action) == b"\0"
        await bench.bmc.power.settled()
        assert bench.chassis.powered is powered
        assert console.command(0x00, 0x01)[1] & 1 == powered


async def test_actions_that_need_power_are_refused_without_it(bench: Bench) -> None:
    console = bench.login()
    for action in (CYCLE, RESET, DIAGNOSE):
        assert power(console, action) == b"\xd5"
    assert power(console, 9) == b"\xcc"
    assert bench.chassis.boots == []


async def test_a_cycle_is_off_before_it_is_on_and_takes_later_commands_in_order(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(power_cycle_s=0.02)
    console = bench.login()
    power(console, ON)
    await bench.bmc.power.settled()
    power(console, CYCLE)
    power(console, OFF)
    await until(lambda: not bench.chassis.powered)
    await bench.bmc.power.settled()
    assert len(bench.chassis.boots) == 2
    assert not bench.chassis.powered


async def test_the_diagnostic_interrupt_reaches_the_machine(bench: Bench) -> None:
    console = bench.login()
    power(console, ON)
    await bench.bmc.power.settled()
    power(console, DIAGNOSE)
    await bench.bmc.power.settled()
    assert bench.chassis.interrupts == ["nmi"]


@pytest.mark.parametrize(
    ("device", "name"), [(1, "pxe"), (2, "disk"), (5, "cd"), (6, "bios"), (8, "cd"), (11, "disk"), (0, None)]
)
async def test_a_one_time_override_holds_for_one_boot(bench: Bench, device: int, name: str | None) -> None:
    console = bench.login()
    assert set_flags(console, 0xA0, device) == b"\0"
    assert flags(console) == bytes((0xA0, device << 2, 0, 0, 0))
    power(console, ON)
    await bench.bmc.power.settled()
    assert flags(console)[0] == 0x20
    power(console, RESET)
    await bench.bmc.power.settled()
    assert bench.chassis.boots == [name, None]


async def test_a_persistent_override_holds_for_every_boot(make_bench: MakeBench) -> None:
    bench = make_bench(session_timeout_s=10_000)
    console = bench.login()
    set_flags(console, 0xE0, 1)
    power(console, ON)
    await bench.bmc.power.settled()
    bench.clock.pass_by(3600)
    power(console, RESET)
    await bench.bmc.power.settled()
    assert bench.chassis.boots == ["pxe", "pxe"]
    assert flags(console)[0] == 0xE0


async def test_an_override_lapses_after_sixty_seconds_unless_told_to_stay(make_bench: MakeBench) -> None:
    bench = make_bench(session_timeout_s=1000)
    console = bench.login()
    set_flags(console, 0x80, 1)
    bench.clock.pass_by(59)
    assert flags(console)[0] == 0x80
    bench.clock.pass_by(2)
    assert flags(console)[0] == 0x00
    assert console.command(0x00, 0x08, b"\x03\x08") == b"\0"
    set_flags(console, 0x80, 1)
    bench.clock.pass_by(200)
    assert flags(console)[0] == 0x80


async def test_a_machine_that_reboots_by_itself_uses_the_override_up(bench: Bench) -> None:
    console = bench.login()
    power(console, ON)
    await bench.bmc.power.settled()
    set_flags(console, 0x80, 1)
    bench.chassis.reboot_from_inside()
    bench.chassis.reboot_from_inside()
    assert bench.chassis.boots == [None, "pxe", None]
    assert console.command(0x00, 0x07) == b"\x00\x0a\x01"


def test_boot_parameters_zero_to_four(bench: Bench) -> None:
    console = bench.login()
    assert console.command(0x00, 0x08, b"\x00\x01") == b"\0"
    assert console.command(0x00, 0x08, b"\x00\x01") == b"\x81"
    assert console.command(0x00, 0x08, b"\x00\x00") == b"\0"
    assert console.command(0x00, 0x08, b"\x04\x03\x01") == b"\0"
    assert console.command(0x00, 0x08, b"\x04\x02\x02") == b"\0"
    assert console.command(0x00, 0x09, b"\x04\x00\x00") == b"\x00\x01\x04\x00\x03"
    assert console.command(0x00, 0x08, b"\x83") == b"\0"
    assert console.command(0x00, 0x09, b"\x03\x00\x00") == b"\x00\x01\x83\x00"
    assert console.command(0x00, 0x09, b"\x60\x00\x00") == b"\x80"
    assert console.command(0x00, 0x08, b"\x05\x80") == b"\xc7"


async def test_a_locked_override_is_not_used(bench: Bench) -> None:
    console = bench.login()
    set_flags(console, 0x80, 1)
    console.command(0x00, 0x08, b"\x85")
    power(console, ON)
    await bench.bmc.power.settled()
    assert bench.chassis.boots == [None]


async def test_fault_power_ignored_says_yes_and_does_nothing(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.set_fault("power-ignored")
    assert power(console, ON) == b"\0"
    await bench.bmc.power.settled()
    assert not bench.chassis.powered
    bench.bmc.clear_faults()
    power(console, ON)
    await bench.bmc.power.settled()
    assert bench.chassis.powered


async def test_fault_boot_flag_ignored_boots_as_always(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.set_fault("boot-flag-ignored")
    set_flags(console, 0x80, 1)
    assert flags(console)[0] == 0x80
    power(console, ON)
    await bench.bmc.power.settled()
    assert bench.chassis.boots == [None]


async def test_a_machine_that_fails_to_start_shows_as_a_control_fault(bench: Bench) -> None:
    bench.chassis.start_fails = "no kernel for it"
    console = bench.login()
    power(console, ON)
    await bench.bmc.power.settled()
    assert console.command(0x00, 0x01)[1] & 0x11 == 0x10


def test_the_identify_light_goes_out_by_itself_or_stays(make_bench: MakeBench) -> None:
    bench = make_bench(session_timeout_s=10_000)
    console = bench.login()
    assert console.command(0x00, 0x04) == b"\0"
    assert console.command(0x00, 0x01)[3] & 0x30 == 0x10
    bench.clock.pass_by(16)
    assert console.command(0x00, 0x01)[3] & 0x30 == 0
    assert console.command(0x00, 0x04, b"\x00\x01") == b"\0"
    bench.clock.pass_by(1000)
    assert console.command(0x00, 0x01)[3] & 0x30 == 0x20
    assert console.command(0x00, 0x04, b"\x00") == b"\0"
    assert console.command(0x00, 0x01)[3] & 0x30 == 0


def test_power_on_hours_and_restore_policy(make_bench: MakeBench) -> None:
    bench = make_bench(session_timeout_s=1e6)
    console = bench.login()
    bench.clock.pass_by(7200)
    assert console.command(0x00, 0x0F) == struct.pack("<BBI", 0, 60, 2)
    assert console.command(0x00, 0x06, b"\x02") == b"\x00\x07"
    assert console.command(0x00, 0x01)[1] >> 5 & 3 == 2
    assert console.command(0x00, 0x06, b"\x03") == b"\x00\x07"
    assert console.command(0x00, 0x01)[1] >> 5 & 3 == 2


async def test_an_expired_watchdog_acts_and_logs(bench: Bench) -> None:
    console = bench.login()
    power(console, ON)
    await bench.bmc.power.settled()
    assert console.command(0x06, 0x22) == b"\x80"
    assert console.command(0x06, 0x24, b"\x04\x02\x00\x3e\x01\x00") == b"\0"
    assert console.command(0x06, 0x22) == b"\0"
    assert console.command(0x06, 0x25)[1] & 0x40
    await until(lambda: not bench.chassis.powered)
    assert console.command(0x06, 0x25)[1:5] == b"\x04\x02\x00\x10"
    last = bench.bmc.sel.records[-1]
    assert last[10] == 0x23
    assert last[13] & 0x0F == 2
