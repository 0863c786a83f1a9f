"""ipmitool drives the lab's BMC as it drives any other."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.contract.lab_bmc.conftest import Lab, terminal, until

MakeLab = Callable[..., Awaitable[Lab]]


@pytest.mark.parametrize("suite", [(), ("-C", "3"), ("-C", "17")])
async def test_power_is_switched_and_read(lab: Lab, suite: tuple[str, ...]) -> None:
    assert await lab.ok(lab.ipmitool(*suite, "power", "status")) == "Chassis Power is off\n"
    await lab.ok(lab.ipmitool(*suite, "power", "on"))
    await lab.bmc.power.settled()
    status = await lab.ok(lab.ipmitool(*suite, "chassis", "status"))
    assert re.search(r"System Power\s+: on", status)
    await lab.ok(lab.ipmitool(*suite, "power", "reset"))
    await lab.bmc.power.settled()
    assert len(lab.chassis.boots) == 2
    await lab.ok(lab.ipmitool(*suite, "power", "soft"))
    await lab.bmc.power.settled()
    assert not lab.chassis.powered
    assert lab.bmc.sessions.closed == lab.bmc.sessions.opened == 5


async def test_the_boot_device_is_set_and_read_back(lab: Lab) -> None:
    await lab.ok(lab.ipmitool("chassis", "bootdev", "pxe", "options=efiboot"))
    shown = await lab.ok(lab.ipmitool("chassis", "bootparam", "get", "5"))
    for line in ("Boot Flag Valid", "Options apply to only next boot", "BIOS EFI boot", "Force PXE"):
        assert line in shown
    await lab.ok(lab.ipmitool("power", "on"))
    await lab.bmc.power.settled()
    assert lab.chassis.boots == ["pxe"]
    assert "Boot Flag Invalid" in await lab.ok(lab.ipmitool("chassis", "bootparam", "get", "5"))
    await lab.ok(lab.ipmitool("chassis", "bootdev", "disk", "options=persistent"))
    assert "all future boots" in await lab.ok(lab.ipmitool("chassis", "bootparam", "get", "5"))


async def test_sensors_are_listed_with_values_and_thresholds(lab: Lab) -> None:
    await lab.chassis.power_on(boot_device=None)
    listed = await lab.ok(lab.ipmitool("sdr", "elist"))
    assert re.search(r"GPU7 Temp\s+\| 17h \| ok\s+\| 11\.8 \| \d+ degrees C", listed)
    assert re.search(r"PS1 Status\s+\| 52h \| ok\s+\| 10\.1 \| Presence detected", listed)
    table = await lab.ok(lab.ipmitool("sensor"))
    assert re.search(r"Inlet Temp\s+\| 2\d\.000\s+\| degrees C\s+\| ok .* 43\.000\s+\| 47\.000", table)
    lab.bmc.sensors.force("Inlet Temp", 50)
    assert re.search(r"Inlet Temp\s+\| 50\.000\s+\| degrees C\s+\| cr ", await lab.ok(lab.ipmitool("sensor")))


async def test_the_event_log_is_read_cleared_and_timed(make_lab: MakeLab) -> None:
    lab = await make_lab()
    lab.bmc.sensors.force("PS1 Status", 0x09)
    listed = await lab.ok(lab.ipmitool("sel", "elist"))
    assert "Power Supply PS1 Status | Power Supply AC lost | Asserted" in listed
    assert "Entries          : 2" in await lab.ok(lab.ipmitool("sel", "info"))
    await lab.ok(lab.ipmitool("sel", "clear"))
    assert len((await lab.ok(lab.ipmitool("sel", "elist"))).splitlines()) == 1
    await lab.ok(lab.ipmitool("sel", "time", "set", "06/15/27 12:00:00"))
    assert "06/15/27 12:00:0" in await lab.ok(lab.ipmitool("sel", "time", "get"))


async def test_identity_network_and_users_are_printed(lab: Lab) -> None:
    fru = await lab.ok(lab.ipmitool("fru", "print"))
    assert re.search(r"Chassis Serial\s+: LAB-C0001", fru)
    assert re.search(r"Product Name\s+: PowerEdge XE9680", fru)
    assert "checksum" not in fru
    lan = await lab.ok(lab.ipmitool("lan", "print", "1"))
    assert re.search(r"IP Address\s+: 127\.161\.0\.1", lan)
    assert re.search(r"RMCP\+ Cipher Suites\s+: 3,17", lan)
    assert re.search(r"2\s+admin\s.*ADMINISTRATOR", await lab.ok(lab.ipmitool("user", "list", "1")))
    assert "Firmware Revision         : 7.10" in await lab.ok(lab.ipmitool("mc", "info"))
    guid = (await lab.ok(lab.ipmitool("mc", "guid"))).lower()
    assert str(lab.bmc.guid) in guid
    assert "3780 Watts" not in await lab.ok(lab.ipmitool("dcmi", "power", "reading"))


async def test_ipv6_addresses_are_printed_and_set(lab: Lab) -> None:
    printed = await lab.ok(lab.ipmitool("lan6", "print", "1"))
    assert re.search(r"fe80::[0-9a-f:]+/64", printed)
    await lab.ok(lab.ipmitool("lan6", "set", "1", "static_addr", "0", "enable", "fd00:66::9", "48"))
    assert "fd00:66::9/48" in await lab.ok(lab.ipmitool("lan6", "print", "1"))


async def test_identify_and_watchdog(lab: Lab) -> None:
    await lab.ok(lab.ipmitool("chassis", "identify", "30"))
    assert lab.bmc.identify.name == "TIMED"
    await lab.ok(lab.ipmitool("chassis", "identify", "force"))
    assert lab.bmc.identify.name == "ON"
    assert "Stopped" in await lab.ok(lab.ipmitool("mc", "watchdog", "get"))


async def test_a_cold_reset_is_taken_and_the_bmc_comes_back(make_lab: MakeLab) -> None:
    lab = await make_lab(reset_s=0.5)
    assert "Sent cold reset command" in await lab.ok(lab.ipmitool("mc", "reset", "cold"))
    assert lab.bmc.down
    await lab.ok(lab.ipmitool("-N", "1", "-R", "8", "power", "status"))
    assert lab.bmc.resets == 1


async def test_the_console_shows_text_takes_keys_and_lets_go(lab: Lab) -> None:
    await lab.chassis.power_on(boot_device="pxe")
    async with terminal(lab.ipmitool("sol", "activate"), lab.folder) as screen:
        await screen.expect(b"node-c login: ")
        screen.type(b"root\r")
        await screen.expect(b"login: root")
        assert lab.chassis.typed == b"root\r"
        refused = await lab.run(lab.ipmitool("sol", "activate"))
        assert "SOL payload already active on another session" in refused.text + refused.errors
        screen.type(b"\r~.")
        await screen.expect(b"terminated")
        await until(lambda: lab.bmc.sol.owner is None)


async def test_a_console_can_be_taken_from_another(lab: Lab) -> None:
    await lab.chassis.power_on(boot_device=None)
    async with terminal(lab.ipmitool("sol", "activate"), lab.folder) as loser:
        await loser.expect(b"login: ")
        await lab.ok(lab.ipmitool("sol", "deactivate"))
        async with terminal(lab.ipmitool("sol", "activate"), lab.folder) as winner:
            await winner.expect(b"operational")
            await until(lambda: lab.bmc.sol.owner is not None)
            lab.chassis.print(b"for the winner")
            await winner.expect(b"for the winner")
            assert b"for the winner" not in loser.seen


async def test_wrong_password_unknown_user_and_dead_bmc_fail(lab: Lab) -> None:
    lab.bmc.set_fault("wrong-password")
    result = await lab.run(lab.ipmitool("-v", "power", "status"))
    assert result.code == 1
    assert "password" in result.text + result.errors or "HMAC" in result.text + result.errors
    lab.bmc.clear_faults()
    unknown = lab.ipmitool("-v", "power", "status")
    unknown[unknown.index("-U") + 1] = "nobody"
    assert "unauthorized name" in (await lab.run(unknown)).errors
    lab.bmc.set_fault("no-sessions")
    assert "insufficient resources" in (await lab.run(lab.ipmitool("-v", "power", "status"))).errors
    lab.bmc.clear_faults()
    lab.bmc.set_fault("silent")
    begun = time.monotonic()
    assert (await lab.run(lab.ipmitool("-N", "1", "-R", "1", "power", "status"))).code == 1
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(("fault", "percent"), [("loss", 2), ("duplicates", 30)])
async def test_a_bad_line_slows_and_breaks_nothing(lab: Lab, fault: str, percent: int) -> None:
    lab.bmc.set_fault(fault, percent)
    for number in range(20):
        lab.bmc.sel.add(0x01, 0x01, bytes((0x59, number, 45)), event_type=0x01)
    listed = await lab.ok(lab.ipmitool("-N", "1", "-R", "8", "sel", "elist"))
    assert len(listed.splitlines()) == 21


@pytest.mark.timeout(120)  # twenty thousand datagrams, on a machine that may be busy with others
async def test_ten_thousand_events_are_listed(lab: Lab) -> None:
    for number in range(9_999):
        lab.bmc.sel.add(0x04, 0x30, bytes((0x52, number & 0xFF, 5)), event_type=0x01)
    listed = await lab.ok(lab.ipmitool("sel", "list"), limit_s=100)
    assert len(listed.splitlines()) == 10_000
