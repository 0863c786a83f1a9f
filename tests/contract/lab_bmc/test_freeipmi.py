"""FreeIPMI's programs drive the lab's BMC without a workaround flag."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import pytest

from lab.bmc import BmcSpec, BmcUser, LightChassis, start_rack
from tests.contract.lab_bmc.conftest import ADDRESS, PASSWORD, USER, Lab, terminal, until

MakeLab = Callable[..., Awaitable[Lab]]
SCALE = 512


@pytest.mark.parametrize("suite", [(), ("-I", "3"), ("-I", "17")])
async def test_ipmipower_switches_and_reads_the_power(lab: Lab, suite: tuple[str, ...]) -> None:
    assert await lab.ok(lab.freeipmi("ipmipower", *suite, "--stat")) == f"{ADDRESS}: off\n"
    assert await lab.ok(lab.freeipmi("ipmipower", *suite, "--on", "--wait-until-on")) == f"{ADDRESS}: ok\n"
    assert await lab.ok(lab.freeipmi("ipmipower", *suite, "--stat")) == f"{ADDRESS}: on\n"
    assert lab.chassis.powered


@pytest.mark.parametrize(
    ("fault", "words"),
    [("wrong-password", "password invalid"), ("no-sessions", "BMC busy"), (None, "username invalid")],
)
async def test_ipmipower_tells_refusals_apart(lab: Lab, fault: str | None, words: str) -> None:
    argv = lab.freeipmi("ipmipower", "--stat", "--session-timeout=5000")
    if fault:
        lab.bmc.set_fault(fault)
    else:
        argv += ["-u", "nobody"]
    assert words in (await lab.run(argv)).text


async def test_ipmi_sel_lists_and_clears(lab: Lab) -> None:
    lab.bmc.sensors.force("GPU3 Temp", 95)
    listed = await lab.ok(lab.freeipmi("ipmi-sel", "--sdr-cache-recreate", "--quiet-cache"))
    assert re.search(r"GPU3 Temp\s+\| Temperature\s+\| Upper Critical - going high.*95\.00 C", listed)
    await lab.ok(lab.freeipmi("ipmi-sel", "--clear"))
    assert "Log Area Reset/Cleared" in await lab.ok(lab.freeipmi("ipmi-sel", "--quiet-cache"))
    assert len(lab.bmc.sel) == 1


async def test_ipmi_sensors_reads_all(lab: Lab) -> None:
    await lab.chassis.power_on(boot_device=None)
    listed = await lab.ok(lab.freeipmi("ipmi-sensors", "--sdr-cache-recreate", "--quiet-cache"))
    assert re.search(r"GPU7 Temp\s+\| Temperature\s+\| \d+\.00\s+\| C\s+\| 'OK'", listed)
    assert re.search(r"CPU1 Status .*'Processor Presence detected'", listed)


async def test_ipmi_fru_reads_all_devices_and_reports_a_bad_checksum(lab: Lab) -> None:
    argv = lab.freeipmi("ipmi-fru", "--sdr-cache-recreate", "--quiet-cache")
    listed = await lab.ok(argv)
    assert "FRU Chassis Serial Number: LAB-C0001" in listed
    assert "FRU Product Serial Number: LAB-C0001-PSU2" in listed
    lab.bmc.set_fault("fru-bad-checksum")
    result = await lab.run(argv)
    assert "board info area checksum invalid" in result.text + result.errors


async def test_bmc_info_and_chassis_state(lab: Lab) -> None:
    info = await lab.ok(lab.freeipmi("bmc-info"))
    assert "Manufacturer ID       : Dell Inc. (674)" in info
    assert f"System GUID : {lab.bmc.guid}" in info
    state = await lab.ok(lab.freeipmi("ipmi-chassis", "--get-chassis-status"))
    assert re.search(r"System Power\s+: off", state)
    await lab.ok(lab.freeipmi("ipmi-chassis", "--chassis-identify=30"))
    assert lab.bmc.identify.name != "OFF"


async def test_ipmiconsole_shows_text_takes_keys_and_lets_go(lab: Lab) -> None:
    await lab.chassis.power_on(boot_device=None)
    async with terminal(lab.freeipmi("ipmiconsole"), lab.folder) as screen:
        await screen.expect(b"node-c login: ")
        screen.type(b"root\r")
        await screen.expect(b"login: root")
        screen.type(b"&.")
        await screen.expect(b"closing the connection")
        await until(lambda: lab.bmc.sessions.closed == lab.bmc.sessions.opened)


async def test_ipmiconsole_is_told_when_another_takes_its_console(lab: Lab) -> None:
    async with terminal(lab.freeipmi("ipmiconsole"), lab.folder) as loser:
        await loser.expect(b"SOL established")
        async with terminal(lab.freeipmi("ipmiconsole"), lab.folder) as winner:
            await winner.expect(b"SOL established")
            await loser.expect(b"SOL session stolen")


async def test_ipmiconsole_loses_nothing_on_a_line_that_drops_packets(lab: Lab) -> None:
    lab.bmc.set_fault("loss", 3)
    lab.chassis.powered = True
    text = b"".join(b"%06d %s\r\n" % (number, b"x" * 40) for number in range(300)) + b"THE END\r\n"
    async with terminal(lab.freeipmi("ipmiconsole"), lab.folder) as screen:
        await screen.expect(b"SOL established")
        lab.chassis.print(text)
        await screen.expect(b"THE END", within_s=15)
        assert text in bytes(screen.seen)
    assert lab.bmc.sol.dropped == 0


@pytest.mark.timeout(120)  # five thousand datagrams at once, on a machine that may be busy with others
async def test_ipmipower_asks_512_bmcs_of_one_process(lab: Lab) -> None:
    specs = [
        BmcSpec(
            LightChassis(f"n{number:03d}", f"LAB-{number:03d}", powered=bool(number % 2)),
            f"127.162.{number // 250}.{1 + number % 250}",
            (BmcUser(USER, PASSWORD),),
            port=lab.bmc.port,
            session_limit=16,  # a login that is slow is begun again
        )
        for number in range(SCALE)
    ]
    rack = await start_rack(specs)
    try:
        argv = lab.freeipmi("ipmipower", "--stat", "--session-timeout=90000", "--retransmission-timeout=3000")
        argv[argv.index("-h") + 1] = ",".join(f"{spec.host}:{spec.port}" for spec in specs)
        answers = (await lab.ok(argv, limit_s=100)).splitlines()
    finally:
        await rack.close()
    assert sorted(answers) == sorted(
        f"{spec.host}: {'on' if spec.chassis.powered else 'off'}" for spec in specs
    )
