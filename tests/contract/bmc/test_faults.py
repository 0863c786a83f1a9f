"""What goes wrong at BMCs: a typed error or the right answer, never a hang past the deadline."""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import replace
from typing import cast

import pytest

from bmc import errors
from bmc.capability import BmcTarget, Credential, Privilege
from bmc.drivers import connect
from bmc.ipmi.commands import CHASSIS_STATUS
from bmc.ipmi.driver import Ipmi
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.session import DEAD_AFTER_S, Session
from lab.bmc import BmcUser

from .conftest import PASSWORD, USER, LabBackend, MakeLab, cancelled_at_work, refused


def login(lab: LabBackend, username: str, password: str) -> BmcTarget:
    return replace(lab.target, credential=Credential(username, password))


async def test_a_wrong_password_is_told_and_leaves_no_session(lab: LabBackend, endpoint: Endpoint) -> None:
    for _ in range(8):  # twice the BMC's slots: refused logins must not fill them
        error = await refused(login(lab, USER, "wrong"), endpoint)
        assert isinstance(error, errors.AuthRejected)
        assert error.rejection is errors.Rejection.WRONG_PASSWORD


async def test_an_unknown_user_is_told_from_a_wrong_password(lab: LabBackend, endpoint: Endpoint) -> None:
    error = await refused(login(lab, "nobody", PASSWORD), endpoint)
    assert isinstance(error, errors.AuthRejected)
    assert error.rejection is errors.Rejection.UNKNOWN_USER


async def test_a_user_with_too_little_privilege_is_told(lab: LabBackend, endpoint: Endpoint) -> None:
    viewer = login(lab, "viewer", "viewer-pw")
    error = await refused(viewer, endpoint)
    assert isinstance(error, errors.PrivilegeTooLow)
    async with connect(replace(viewer, privilege=Privilege.USER), endpoint=endpoint) as bmc:
        await bmc.power_state()
        with pytest.raises(errors.PrivilegeTooLow):
            await bmc.reset_bmc()


async def test_no_free_session_is_busy(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("no-sessions")
    error = await refused(lab.target, endpoint)
    assert isinstance(error, errors.Busy)
    assert error.occupied is errors.Occupied.SESSIONS


@pytest.mark.parametrize("suites", [(17,), (17, 16)])
async def test_a_suite_that_the_bmc_lacks_is_no_wrong_password(
    make_lab: MakeLab, endpoint: Endpoint, suites: tuple[int, ...]
) -> None:
    lab = await make_lab(suites=(3,))
    error = await refused(replace(lab.target, suites=suites[:1]), endpoint)
    assert isinstance(error, errors.WrongSuite)


@pytest.mark.parametrize("offered", [(3,), (17,), (3, 17)])
async def test_finds_the_suite_that_both_have(
    make_lab: MakeLab, endpoint: Endpoint, offered: tuple[int, ...]
) -> None:
    lab = await make_lab(suites=offered)
    async with connect(lab.target, endpoint=endpoint) as bmc:
        await bmc.power_state()


async def test_the_bmcs_own_key_is_used_and_its_lack_told(make_lab: MakeLab, endpoint: Endpoint) -> None:
    lab = await make_lab(kg="house-key")
    keyed = replace(lab.target, credential=Credential(USER, PASSWORD, "house-key"))
    async with connect(keyed, endpoint=endpoint) as bmc:
        await bmc.power_state()
    error = await refused(lab.target, endpoint)
    assert isinstance(error, errors.AuthRejected)
    assert error.rejection is errors.Rejection.WRONG_KG


async def test_a_dead_bmc_is_unreachable_within_five_seconds(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("silent")
    error = await refused(lab.target, endpoint)
    assert isinstance(error, errors.Unreachable)
    assert error.waited_s == pytest.approx(DEAD_AFTER_S)


async def test_a_name_that_no_resolver_takes_is_unreachable(lab: LabBackend, endpoint: Endpoint) -> None:
    error = await refused(replace(lab.target, host="bmc-ä" + "x" * 64 + ".invalid"), endpoint)
    assert isinstance(error, errors.Unreachable)
    assert error.reason


async def test_a_password_beyond_twenty_bytes_is_never_cut(lab: LabBackend, endpoint: Endpoint) -> None:
    assert len(PASSWORD) == 20
    error = await refused(login(lab, USER, PASSWORD + "x"), endpoint)
    assert isinstance(error, errors.AuthRejected)
    assert error.rejection is errors.Rejection.PASSWORD_TOO_LONG


async def test_a_password_that_is_no_ascii_logs_in(make_lab: MakeLab, endpoint: Endpoint) -> None:
    lab = await make_lab(users=(BmcUser(USER, "schlüssel"),))
    async with connect(login(lab, USER, "schlüssel"), endpoint=endpoint) as bmc:
        await bmc.power_state()


@pytest.mark.parametrize(
    ("fault", "percent", "times"), [("loss", 5.0, 2), ("loss", 15.0, 1), ("duplicates", 100.0, 3)]
)
async def test_a_bad_network_costs_time_and_nothing_else(
    lab: LabBackend, endpoint: Endpoint, fault: str, percent: float, times: int
) -> None:
    lab.bmc.set_fault(fault, percent)
    async with asyncio.timeout(15):
        for _ in range(times):
            async with connect(lab.target, endpoint=endpoint) as bmc:
                assert await bmc.sel()
                assert (await bmc.identity()).serial == lab.chassis.serial


async def test_a_slow_bmc_is_waited_for(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("slow", 0.6)  # longer than the first packet is waited for
    async with asyncio.timeout(15), connect(lab.target, endpoint=endpoint) as bmc:
        await bmc.power_state()
    assert lab.bmc.log.datagrams < 40


async def test_garbage_is_a_typed_error(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("garbage", 100.0)
    error = await refused(lab.target, endpoint, 15)
    assert isinstance(error, errors.Unreachable | errors.BadAnswer | errors.AuthRejected | errors.WrongSuite)


async def test_some_garbage_is_survived(lab: LabBackend, endpoint: Endpoint) -> None:
    async with asyncio.timeout(15), connect(lab.target, endpoint=endpoint) as bmc:
        lab.bmc.set_fault("garbage", 20.0)
        assert await bmc.sel()
        lab.bmc.clear_faults()


async def test_a_bmc_that_restarts_in_a_session_is_unreachable(lab: LabBackend, endpoint: Endpoint) -> None:
    session = Session(endpoint, lab.target)
    await session.open()
    lab.bmc.cold_reset()
    with pytest.raises(errors.Unreachable):
        await session.command(CHASSIS_STATUS, deadline_s=2.0)
    await session.close()
    assert endpoint.counts.lost == 1


@pytest.mark.timeout(150)
async def test_ten_thousand_events_are_read(lab: LabBackend, endpoint: Endpoint) -> None:
    for number in range(10_000):
        lab.bmc.sel.add(0x0C, number % 256, b"\xa0\xff\x03")
    async with asyncio.timeout(140), connect(lab.target, endpoint=endpoint) as bmc:
        events = await bmc.sel()
    assert len(events) == len(lab.bmc.sel)
    assert [entry.raw for entry in events] == list(lab.bmc.sel.records)


async def test_events_of_a_clock_in_1970_have_no_time(lab: LabBackend, endpoint: Endpoint) -> None:
    lab.bmc.set_fault("clock-1970")
    lab.bmc.sel.add(0x0C, 1, b"\xa0\xff\x03")
    async with connect(lab.target, endpoint=endpoint) as bmc:
        assert (await bmc.sel())[-1].time is None


async def test_an_inventory_with_a_bad_checksum_is_never_a_serial(
    lab: LabBackend, endpoint: Endpoint
) -> None:
    lab.bmc.set_fault("fru-bad-checksum")
    async with connect(lab.target, endpoint=endpoint) as bmc:
        fru = await bmc.fru()
        identity = await bmc.identity()
    assert any("problem" in fields for fields in fru.values())
    assert identity.serial in (None, lab.chassis.serial)


@pytest.mark.parametrize("limit", [16, 40, 255])
async def test_inventory_is_read_in_the_pieces_that_the_bmc_gives(
    make_lab: MakeLab, endpoint: Endpoint, limit: int
) -> None:
    lab = await make_lab(fru_read_limit=limit)
    async with connect(lab.target, endpoint=endpoint) as bmc:
        assert (await bmc.identity()).serial == lab.chassis.serial


async def test_a_cancelled_command_still_logs_out(lab: LabBackend, endpoint: Endpoint) -> None:
    await cancelled_at_work(lab.target, endpoint)
    assert endpoint.counts.open == 0
    assert len(lab.bmc.sessions) == 0


@pytest.mark.parametrize("after", range(0, 40, 2))
async def test_a_login_cancelled_at_any_step_leaves_no_live_session(
    lab: LabBackend, endpoint: Endpoint, after: int
) -> None:
    session = Session(endpoint, lab.target)
    task = asyncio.create_task(session.open())
    for _ in range(after):
        await asyncio.sleep(0)
    if task.cancel():
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        await session.close()
    assert endpoint.counts.open == 0
    async with connect(lab.target, endpoint=endpoint) as bmc:  # what was sent before is dealt with now
        await bmc.power_state()
    assert not any(one.keys is not None for one in lab.bmc.sessions)


async def test_more_sessions_than_slots_are_refused_and_come_back(
    lab: LabBackend, endpoint: Endpoint
) -> None:
    sessions = [Session(endpoint, lab.target) for _ in range(lab.bmc.spec.session_limit)]
    for session in sessions:
        await session.open()
    assert isinstance(await refused(lab.target, endpoint), errors.Busy)
    for session in sessions:
        await session.close()
    async with connect(lab.target, endpoint=endpoint) as bmc:
        await bmc.power_state()


class Liar(asyncio.DatagramProtocol):
    """Answers every Open Session with cipher suite 3, whatever was asked."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if data[4] == 0:  # authentication capabilities
            message = bytes((0x81, 0x1C, 0x63, 0x20, data[18], 0x38, 0, 1, 0x80, 4, 2, 0, 0, 0, 0, 0))
            self.transport.sendto(b"\x06\x00\xff\x07" + bytes(9) + bytes((len(message),)) + message, addr)
        elif data[5] == 0x10:
            suite = b"".join(struct.pack("<BBHBBH", kind, 0, 0x0800, 1, 0, 0) for kind in range(3))
            body = data[16:17] + b"\x00\x04\x00" + data[20:24] + b"\x01\x02\x03\x04" + suite
            head = b"\x06\x00\xff\x07\x06\x11" + bytes(8) + struct.pack("<H", len(body))
            self.transport.sendto(head + body, addr)


async def test_a_bmc_that_answers_with_another_suite_is_found_out(endpoint: Endpoint) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Liar, local_addr=("127.162.0.2", 0))
    port = transport.get_extra_info("sockname")[1]
    target = BmcTarget("n1", "127.162.0.2", Credential("u", "p"), port=port, suites=(17,))
    error = await refused(target, endpoint)
    assert isinstance(error, errors.WrongSuite)
    assert "authentication 1" in error.answered
    transport.close()


@pytest.mark.parametrize("protocol", ["ipmi", "redfish"])
async def test_a_bmc_on_ipv6_is_reached(make_lab: MakeLab, endpoint: Endpoint, protocol: str) -> None:
    if not ipv6_here():
        pytest.skip("this machine has no IPv6")
    lab = await make_lab(host="::1", redfish_port=0)
    async with connect(replace(lab.target, protocol=protocol), endpoint=endpoint) as bmc:
        assert (await bmc.identity()).serial == lab.chassis.serial
        if isinstance(bmc, Ipmi):
            settings = await bmc.lan()
            assert settings.address == "0.0.0.0"
            assert settings.ipv6[0] == "::1/64"


def ipv6_here() -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True
