"""Faults by name, and the rack that holds the BMCs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from lab.bmc import BmcSpec, BmcUser, LightChassis, start_rack
from lab.errors import BadRequest, NoService
from tests.unit.lab_bmc.conftest import USERS, Bench, Refused, until

MakeBench = Callable[..., Bench]


def spec(name: str, port: int = 0) -> BmcSpec:
    return BmcSpec(LightChassis(name, f"LAB-{name}"), "127.0.0.1", USERS, port=port)


def test_an_unknown_fault_is_refused_with_the_known_ones(bench: Bench) -> None:
    with pytest.raises(BadRequest, match="no fault 'lazy'") as refused:
        bench.bmc.set_fault("lazy")
    assert "power-ignored" in refused.value.follow
    with pytest.raises(BadRequest, match="cannot be -1"):
        bench.bmc.set_fault("slow", -1)


def test_faults_are_listed_and_cleared(bench: Bench) -> None:
    bench.bmc.set_fault("loss", 12.5)
    bench.bmc.set_fault("slow")
    bench.bmc.set_fault("silent")
    bench.bmc.set_fault("silent", False)
    assert bench.bmc.faults.all() == {"loss": 12.5, "slow": 2.0}
    bench.bmc.clear_faults()
    assert bench.bmc.faults.all() == {}


def test_silent_answers_nothing_and_counts_what_came(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.set_fault("silent")
    bench.bmc.log.clear()
    assert console.exchange(console.seal(0, console.message(0x06, 0x01))) == []
    assert (bench.bmc.log.datagrams, bench.bmc.log.total) == (1, 0)
    bench.bmc.clear_faults()
    assert console.command(0x06, 0x01)[0] == 0


@pytest.mark.parametrize(("fault", "status"), [("wrong-password", 0x0F), ("no-sessions", 0x01)])
def test_login_faults(bench: Bench, fault: str, status: int) -> None:
    bench.bmc.set_fault(fault)
    with pytest.raises(Refused) as refused:
        bench.login()
    assert refused.value.status == status
    bench.bmc.clear_faults()
    bench.login()


async def test_slow_answers_late_and_right(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.set_fault("slow", 0.03)
    begun = asyncio.get_running_loop().time()
    assert console.exchange(console.seal(0, console.message(0x06, 0x01))) == []
    await until(lambda: bool(bench.wire.sent))
    assert asyncio.get_running_loop().time() - begun >= 0.03
    assert console.unseal(bench.wire.take()[0])[1][6] == 0


def test_loss_takes_datagrams_both_ways(bench: Bench) -> None:
    bench.bmc.set_fault("loss", 50)
    ping = bytes.fromhex("0600ff06000011be80420000")
    answered = sum(len(bench.console().exchange(ping)) for _ in range(400))
    assert 60 < answered < 140  # a quarter is left when half is lost each way


def test_duplicates_run_a_command_once_and_answer_twice(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.set_fault("duplicates")
    answers = console.exchange(console.seal(0, console.message(0x0A, 0x44, bytes(16))))
    assert len(answers) == 2
    assert bench.bmc.log.count(0x0A, 0x44) == 1


def test_garbage_spoils_every_answer(bench: Bench) -> None:
    ping = bytes.fromhex("0600ff06000011be80420000")
    (sound,) = bench.console().exchange(ping)
    bench.bmc.set_fault("garbage")
    spoiled = [bench.console().exchange(ping)[0] for _ in range(50)]
    assert sound not in spoiled
    assert len(set(spoiled)) > 10


def test_reset_in_session_strikes_at_the_nth_command(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.set_fault("reset-in-session", 3)
    console.command(0x06, 0x01)
    console.command(0x06, 0x01)
    assert bench.bmc.resets == 1
    assert console.exchange(console.seal(0, console.message(0x06, 0x01))) == []


async def test_a_rack_answers_on_its_own_sockets_and_closes_them() -> None:
    rack = await start_rack([spec("alpha"), spec("beta")])
    try:
        assert sorted(bmc.name for bmc in rack) == ["alpha", "beta"]
        alpha = rack.bmc("alpha")
        assert alpha.port not in (0, rack.bmc("beta").port)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            ping = bytes.fromhex("0600ff06000011be80420000")
            sock.sendto(ping, ("127.0.0.1", alpha.port))
            answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 100), 5)
        assert answer[8:10] == b"\x40\x42"
        with pytest.raises(BadRequest, match="no BMC is called") as refused:
            rack.bmc("alfa")
        assert refused.value.follow == "did you mean alpha?"
    finally:
        port = rack.bmc("alpha").port
        await rack.close()
    again = await start_rack([spec("alpha", port)])
    await again.close()


async def test_a_taken_address_stops_the_whole_rack_and_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(NoService, match=f"127.0.0.1:{port}/udp") as refused:
            await start_rack([spec("alpha"), spec("beta", port)])
    assert refused.value.where == "BMC of beta"


async def test_a_name_stands_once() -> None:
    with pytest.raises(BadRequest, match="stands twice"):
        await start_rack([spec("alpha"), spec("alpha")])


def test_specs_that_make_no_bmc_are_refused(make_bench: MakeBench) -> None:
    with pytest.raises(ValueError, match="cipher suites"):
        make_bench(suites=(3, 8))
    with pytest.raises(ValueError, match="at most 16 bytes name"):
        make_bench(users=(BmcUser("a" * 17, "pw"),))
