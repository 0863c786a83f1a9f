"""What is built on the drivers: screens, escalation, the console daemon, search; LAN, users, watchdog."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from bmc import errors
from bmc.capability import BmcTarget, Credential, PowerAction, PowerState
from bmc.console.daemon import Daemon
from bmc.console.record import Limits, Recorder
from bmc.console.search import grep
from bmc.console.store import Event, EventKind, Writer
from bmc.drivers import connect
from bmc.escalate import set_power
from bmc.fleet import each
from bmc.ipmi.commands import SET_WATCHDOG
from bmc.ipmi.driver import Ipmi
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import Command
from bmc.screens import Source, shoot
from bmc.vendors import dell
from lab.bmc import BmcSpec, BmcUser, LightChassis, start_rack

from .conftest import HOST, PASSWORD, USER, LabBackend, MakeLab, until

QUICK = Limits(keepalive_s=0.5)
RESET_WATCHDOG = Command(0x06, 0x22, "starting the watchdog")


# --- LAN, users, watchdog


@asynccontextmanager
async def ipmi(lab: LabBackend, endpoint: Endpoint) -> AsyncIterator[Ipmi]:
    async with connect(lab.target, endpoint=endpoint) as bmc:
        assert isinstance(bmc, Ipmi)
        yield bmc


async def test_knows_how_the_bmc_is_on_its_network(lab: LabBackend, endpoint: Endpoint) -> None:
    async with ipmi(lab, endpoint) as bmc:
        settings = await bmc.lan()
    assert (settings.address, settings.mac, settings.vlan) == (HOST, lab.bmc.mac.hex(":"), None)
    (own,) = settings.ipv6  # the one that its interface gave itself
    assert own.startswith("fe80::")
    assert own.endswith("/64")


async def test_lists_the_users(lab: LabBackend, endpoint: Endpoint) -> None:
    async with ipmi(lab, endpoint) as bmc:
        users = await bmc.users()
    assert {(user.name, user.privilege, user.enabled) for user in users} == {
        (USER, "administrator", True),
        ("viewer", "user", True),
    }


async def test_stops_a_watchdog_that_runs(lab: LabBackend, endpoint: Endpoint) -> None:
    async with ipmi(lab, endpoint) as bmc:
        await bmc.session.command(SET_WATCHDOG, bytes((4, 3, 0, 0, 0x58, 0x02)))
        await bmc.session.command(RESET_WATCHDOG)
        before = await bmc.watchdog()
        await bmc.stop_watchdog()
        after = await bmc.watchdog()
    assert (before.running, before.action) == (True, "cycle")
    assert 50 < before.seconds_left <= 60
    assert not after.running


async def test_the_clock_is_set(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("clock-1970")
    async with ipmi(lab, endpoint) as bmc:
        assert await bmc.clock() is None
        await bmc.set_clock()
        assert await bmc.clock() is not None


# --- screens


async def test_the_bmcs_own_picture_is_taken_where_there_is_one(
    web: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    shot = await shoot(web.target, tmp_path, endpoint=endpoint)
    assert (shot.source, shot.why) == (Source.BMC, "")
    assert Image.open(io.BytesIO(shot.picture.data)).format == "PNG"


async def test_the_console_stands_in_and_says_why(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    async with Recorder(lab.target, tmp_path, endpoint=endpoint) as recorder:
        await lab.say(b"\x1b[2J\x1b[HSetup")
        await recorder.wait_for(b"Setup", 5)
    without = replace(lab.target, redfish_port=9)
    shot = await shoot(without, tmp_path, endpoint=endpoint)
    assert shot.source is Source.CONSOLE
    assert "Redfish" in shot.why
    assert Image.open(io.BytesIO(shot.picture.data)).size == (80 * 12, 25 * 24)
    with pytest.raises(errors.Unsupported):
        await shoot(without, tmp_path / "nobody", endpoint=endpoint)


# --- escalation


async def test_a_bmc_that_does_nothing_is_answered_with_the_mains(
    make_lab: MakeLab, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dell, "_READY_POLL_S", 0.04)  # this node never goes off by itself
    lab = await make_lab(redfish_port=0)
    lab.bmc.set_fault("power-ignored")
    boots = len(lab.chassis.boots)
    outcome = await set_power(lab.target, PowerAction.CYCLE, wait_s=0.5, endpoint=endpoint)
    assert (outcome.state, outcome.ac_cycled) == (PowerState.ON, True)
    assert len(lab.chassis.boots) > boots


async def test_a_node_that_is_to_be_off_is_not_given_the_mains_back(
    make_lab: MakeLab, endpoint: Endpoint
) -> None:
    lab = await make_lab(redfish_port=0)
    lab.bmc.set_fault("power-ignored")
    with pytest.raises(errors.PowerNotReached):
        await set_power(lab.target, PowerAction.OFF, wait_s=0.3, endpoint=endpoint)
    assert lab.chassis.powered


async def test_what_works_needs_no_mains(lab: LabBackend, endpoint: Endpoint) -> None:
    outcome = await set_power(lab.target, PowerAction.OFF, wait_s=5, endpoint=endpoint)
    assert (outcome.state, outcome.ac_cycled) == (PowerState.OFF, False)


# --- many


async def test_a_rack_is_asked_at_once_and_one_dead_bmc_costs_no_other(endpoint: Endpoint) -> None:
    hosts = {f"m{number}": f"127.162.4.{number}" for number in range(1, 33)}
    users = (BmcUser(USER, PASSWORD),)
    rack = await start_rack(
        [
            BmcSpec(LightChassis(name, f"LAB-{name}", powered=True), host, users)
            for name, host in hosts.items()
        ]
    )
    rack.bmc("m7").set_fault("silent")
    credential = Credential(USER, PASSWORD)
    targets = [BmcTarget(name, host, credential, protocol="ipmi") for name, host in hosts.items()]

    async def serial(target: BmcTarget) -> str | None:
        async with connect(target, endpoint=endpoint) as bmc:
            return (await bmc.identity()).serial

    try:
        results = await each(targets, serial)
    finally:
        await rack.close()
    assert isinstance(results.pop("m7").error, errors.Unreachable)
    assert {name: result.value for name, result in results.items()} == {
        name: f"LAB-{name}" for name in hosts if name != "m7"
    }


async def ended(running: asyncio.Task[None]) -> None:
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_the_daemon_records_counts_and_comes_back(lab: LabBackend, tmp_path: Path) -> None:
    absent = BmcTarget("node-x", "127.162.0.8", Credential("u", "p"), port=9, protocol="ipmi")
    daemon = Daemon([lab.target, absent], tmp_path, limits=QUICK)
    running = asyncio.create_task(daemon.run(tmp_path / "metrics.prom"))
    try:
        await until(lambda: daemon.states()[0].active)
        await lab.say(b"hello\r\n")
        await until(lambda: daemon.states()[0].bytes_kept == 7)
        lab.bmc.cold_reset()
        await until(lambda: daemon.states()[0].gaps == 1)
        await until(lambda: daemon.states()[0].active)
        await until(lambda: "no answer" in daemon.states()[1].problem)
        text = daemon.metrics()
    finally:
        await ended(running)
    assert 'muster_console_active{node="node-k"} 1' in text
    assert 'muster_console_active{node="node-x"} 0' in text
    assert 'muster_console_bytes_total{node="node-k"} 7' in text
    assert 'muster_console_gaps_total{node="node-k"} 1' in text
    assert "muster_bmc_sessions_open 1" in text
    assert (tmp_path / "metrics.prom").read_text().startswith("# HELP")
    assert len(lab.bmc.sessions) == 0


async def test_a_console_in_use_is_had_by_the_daemon_once_it_is_free(
    lab: LabBackend, endpoint: Endpoint, tmp_path: Path
) -> None:
    daemon = Daemon([lab.target], tmp_path / "d", limits=QUICK)
    async with Recorder(lab.target, tmp_path / "r", endpoint=endpoint):
        running = asyncio.create_task(daemon.run())
        await until(lambda: "in use" in daemon.states()[0].problem)
    try:
        await until(lambda: daemon.states()[0].active)
    finally:
        await ended(running)


# --- search


def test_a_fleets_recordings_are_searched(tmp_path: Path) -> None:
    for node, text in (("n1", b"fine\r\n"), ("n2", b"ok\r\n\x1b[31mMachine Check\x1b[0m on CPU 3\r\n")):
        writer = Writer(tmp_path / node, node)
        writer.open(1000.0)
        writer.data(1000.0, text)
        writer.event(Event(1001.0, EventKind.LOST, "Machine Check? no: no answer"))
        writer.close()
    folders = {node: tmp_path / node for node in ("n1", "n2", "n3")}
    hits = list(grep(folders, re.compile("Machine Check"), until=1000.5))
    assert [(hit.node, hit.text) for hit in hits] == [("n2", "Machine Check on CPU 3")]
    assert len(list(grep(folders, re.compile("Machine Check"), since=1000.5))) == 2
