"""Serial over LAN from the console's side of the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.lab_bmc.conftest import Bench, Console, Refused, until

MakeBench = Callable[..., Bench]


@pytest.fixture
def quick(make_bench: MakeBench) -> Bench:
    """A BMC that sends text after 5 ms and again after 10 ms."""
    bench = make_bench()
    bench.bmc.sol.settings.accumulate_5ms = bench.bmc.sol.settings.retry_10ms = 1
    bench.chassis.powered = True
    return bench


def opened(bench: Bench, **changes: object) -> Console:
    console = bench.login(**changes)
    answer = console.activate()
    assert answer[0] == 0
    assert int.from_bytes(answer[7:9], "little") == 200
    return console


async def drain(console: Console, size: int) -> bytes:
    """Read and acknowledge until `size` bytes came."""
    text, last, taken = b"", 0, 0
    while len(text) < size:
        packet = await console.next_sol()
        sequence, data = packet[0] & 15, packet[4:]
        if not sequence:
            continue
        text += data[taken:] if sequence == last else data
        last, taken = sequence, len(data)
        console.send_sol(0, sequence, len(data))
    return text


async def test_text_arrives_in_order_and_once(quick: Bench) -> None:
    console = opened(quick)
    text = b"".join(b"line %04d\r\n" % number for number in range(300))
    for start in range(0, len(text), 700):
        quick.chassis.print(text[start : start + 700])
    assert await drain(console, len(text)) == text
    assert quick.bmc.sol.dropped == 0


async def test_text_printed_while_nobody_listens_is_kept_up_to_the_ring(make_bench: MakeBench) -> None:
    bench = make_bench(ring_bytes=100)
    bench.chassis.print(b"a" * 60 + b"b" * 60)
    console = opened(bench)
    assert await drain(console, 100) == b"a" * 40 + b"b" * 60
    assert bench.bmc.sol.dropped == 20


async def test_an_unacknowledged_packet_is_sent_again_and_has_grown(quick: Bench) -> None:
    console = opened(quick)
    quick.chassis.print(b"first")
    packet = await console.next_sol()
    assert packet[4:] == b"first"
    quick.chassis.print(b" second")
    again = await console.next_sol()
    while again == packet:
        again = await console.next_sol()
    assert again[0] == packet[0]
    assert again[4:] == b"first second"
    console.send_sol(0, again[0], len(b"first"))  # an acknowledgement of the first form
    rest = await console.next_sol()
    assert rest[0] != packet[0] or rest[4:] == b"first second"
    while rest[0] == packet[0]:
        rest = await console.next_sol()
    assert rest[4:] == b" second"


async def test_text_is_dropped_and_counted_once_retries_are_used_up(quick: Bench) -> None:
    quick.bmc.sol.settings.retries = 1
    console = opened(quick)
    quick.chassis.print(b"lost")
    await until(lambda: quick.bmc.sol.dropped == 4)
    quick.chassis.print(b"next")
    packet = await console.next_sol()
    while packet[4:] == b"lost":
        packet = await console.next_sol()
    assert packet[4:] == b"next"
    assert packet[3] & 0x08  # transmit overrun


async def test_text_after_a_pause_goes_at_once_and_a_stream_in_lots(quick: Bench) -> None:
    quick.bmc.sol.settings.accumulate_5ms = 200
    console = opened(quick)
    quick.chassis.print(b"a")
    packet = await console.next_sol(within_s=0.8)
    console.send_sol(0, packet[0], 1)
    for letter in (b"b", b"c", b"d"):
        quick.chassis.print(letter)
        await asyncio.sleep(0.02)
    assert (await console.next_sol())[4:] == b"bcd"


async def test_a_nack_and_a_pause_hold_the_text_back(quick: Bench) -> None:
    console = opened(quick)
    quick.chassis.print(b"held")
    packet = await console.next_sol()
    console.send_sol(0, packet[0], 2, 0x40 | 0x08)  # took two bytes, then CTS off
    console.collect_sol()
    await asyncio.sleep(0.05)
    assert console.collect_sol() == []
    console.send_sol(0)
    assert (await console.next_sol())[4:] == b"ld"


async def test_typed_bytes_reach_the_machine_once(quick: Bench) -> None:
    quick.chassis.echoes = False
    console = opened(quick)
    console.send_sol(1, text=b"root")
    console.send_sol(1, text=b"root")
    console.send_sol(1, text=b"root\r")
    console.send_sol(2, text=b"x")
    assert quick.chassis.typed == b"root\rx"
    assert [packet[1:3] for packet in console.collect_sol()] == [
        b"\x01\x04",
        b"\x01\x04",
        b"\x01\x05",
        b"\x02\x01",
    ]


async def test_typing_at_a_machine_without_power_is_refused(quick: Bench) -> None:
    quick.chassis.powered = False
    console = opened(quick)
    console.send_sol(1, text=b"x")
    assert console.collect_sol() == [bytes((0, 1, 0, 0x60))]


async def test_a_break_reaches_the_machine(quick: Bench) -> None:
    console = opened(quick)
    console.send_sol(0, status=0x10)
    assert quick.chassis.interrupts == ["break"]


async def test_a_second_console_is_refused_and_a_steal_tells_the_loser(quick: Bench) -> None:
    first = opened(quick)
    second = quick.login(own=0xB1B2B3B4)
    assert second.activate() == b"\x80"
    assert second.command(0x06, 0x4A, b"\x01") == b"\x00\x01\x01\x00"
    assert second.command(0x06, 0x4B, b"\x01\x01")[1:5] == first.session.to_bytes(4, "little")
    datagrams = second.exchange(second.seal(0, second.message(0x06, 0x49, b"\x01\x01" + bytes(4))))
    farewell = [packet for packet in datagrams if packet[6:10] == first.own.to_bytes(4, "little")]
    assert first.unseal(farewell[0]) == (1, b"\x00\x00\x00\x10")
    assert second.command(0x06, 0x49, b"\x01\x01" + bytes(4)) == b"\x80"
    assert second.activate()[0] == 0
    first.send_sol(1, text=b"mine?")
    assert first.unseal(quick.wire.take()[-1]) == (1, b"\x00\x01\x00\x50")


async def test_what_was_not_acknowledged_goes_to_the_next_console(quick: Bench) -> None:
    first = opened(quick)
    quick.chassis.print(b"precious")
    await first.next_sol()
    first.command(0x06, 0x3C, first.session.to_bytes(4, "little"))
    assert quick.bmc.sol.owner is None
    assert await drain(opened(quick), 8) == b"precious"


async def test_a_cold_reset_drops_the_session_and_is_silent_for_a_while(make_bench: MakeBench) -> None:
    bench = make_bench(reset_s=5.0)
    bench.chassis.powered = True
    console = opened(bench)
    assert console.command(0x06, 0x02) == b"\0"
    bench.chassis.print(b"unheard")
    assert console.exchange(console.seal(0, console.message(0x06, 0x01))) == []
    assert bench.console().setup(0x10, bench.console().open_request()) == []
    bench.clock.pass_by(5.0)
    assert console.exchange(console.seal(0, console.message(0x06, 0x01))) == []
    fresh = opened(bench)
    bench.chassis.print(b"heard")
    assert await drain(fresh, 5) == b"heard"
    assert bench.bmc.sol.dropped == len(b"unheard")
    assert bench.bmc.resets == 1


async def test_the_ring_can_be_told_to_survive_a_reset(make_bench: MakeBench) -> None:
    bench = make_bench(reset_s=0.0, ring_survives_reset=True)
    bench.chassis.print(b"before ")
    bench.bmc.cold_reset()
    bench.chassis.print(b"after")
    assert await drain(opened(bench), 12) == b"before after"


async def test_payload_support_and_version_are_told(quick: Bench) -> None:
    console = quick.login()
    assert console.command(0x06, 0x4E, b"\x0e") == b"\x00\x03\x00\x3f\x00\x00\x00\x00\x00"
    assert console.command(0x06, 0x4F, b"\x0e\x01") == b"\x00\x10"
    assert console.command(0x06, 0x4F, b"\x0e\x05") == b"\x80"
    assert console.command(0x06, 0x48, b"\x02\x01\xc0\x00\x00\x00") == b"\x81"


async def test_a_console_may_ask_for_clear_text_and_gets_it_signed(quick: Bench) -> None:
    console = quick.login()
    assert console.command(0x06, 0x48, b"\x01\x01\x40\x00\x00\x00")[0] == 0
    quick.chassis.print(b"readable")
    await until(lambda: bool(quick.wire.sent))
    datagram = quick.wire.take()[0]
    assert datagram[5] == 0x40 | 0x01  # authenticated, not encrypted
    assert datagram[20:28] == b"readable"


async def test_a_viewer_may_not_open_the_console(quick: Bench) -> None:
    console = quick.login(user="viewer", password="viewer-pw", role=2)
    assert console.activate() == b"\xd4"


async def test_fault_sol_dead_opens_and_says_nothing(quick: Bench) -> None:
    quick.bmc.set_fault("sol-dead")
    console = opened(quick)
    quick.chassis.print(b"hello")
    await asyncio.sleep(0.03)
    assert console.collect_sol() == []


def test_no_login_while_down(make_bench: MakeBench) -> None:
    bench = make_bench(reset_s=3.0)
    bench.bmc.cold_reset()
    with pytest.raises(ValueError, match="unpack"):
        bench.login()
    bench.clock.pass_by(3.0)
    try:
        bench.login()
    except Refused:
        pytest.fail("the BMC is back and must let a console in")
