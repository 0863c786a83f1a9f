"""What a BMC does with wrong, repeated and spoiled datagrams."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from lab.bmc.endpoint import TABLE
from lab.bmc.ipmi.packet import parse
from lab.bmc.ipmi.session import Window
from tests.unit.lab_bmc.conftest import ADDRESS, Bench


def test_a_repeated_session_sequence_number_is_dropped(bench: Bench) -> None:
    console = bench.login()
    datagram = console.seal(0, console.message(0x06, 0x01))
    assert len(console.exchange(datagram)) == 1
    assert console.exchange(datagram) == []


def test_a_repeated_request_is_answered_from_the_cache_and_not_run_again(bench: Bench) -> None:
    console = bench.login()
    request = console.message(0x0A, 0x44, bytes((0, 0, 0xC1)) + bytes(13))
    first = console.unseal(console.exchange(console.seal(0, request))[0])
    second = console.unseal(console.exchange(console.seal(0, request))[0])
    assert first == second
    assert bench.bmc.log.count(0x0A, 0x44) == 1


def test_packets_outside_the_window_are_dropped(bench: Bench) -> None:
    console = bench.login()
    late = console.seal(0, console.message(0x06, 0x01), sequence=console.sequence + 17)
    assert console.exchange(late) == []
    ahead = console.seal(0, console.message(0x06, 0x01), sequence=console.sequence + 16)
    assert len(console.exchange(ahead)) == 1
    behind = console.seal(0, console.message(0x06, 0x01), sequence=console.sequence + 1)
    assert len(console.exchange(behind)) == 1
    assert console.exchange(behind) == []
    zero = console.seal(0, console.message(0x06, 0x01), sequence=0)
    assert console.exchange(zero) == []


@given(st.lists(st.integers(min_value=0, max_value=60), max_size=80))
def test_the_window_admits_each_number_at_most_once(numbers: list[int]) -> None:
    window = Window()
    admitted = [number for number in numbers if window.admits(number)]
    assert len(admitted) == len(set(admitted))
    assert 0 not in admitted


def test_a_wrong_integrity_code_is_dropped(bench: Bench) -> None:
    console = bench.login()
    datagram = console.seal(0, console.message(0x06, 0x01))
    assert console.exchange(datagram[:-1] + bytes((datagram[-1] ^ 1,))) == []


def test_clear_text_in_an_encrypted_session_is_dropped(bench: Bench) -> None:
    console = bench.login()
    encrypted = console.suite
    console.suite = 16
    plain = console.seal(0, console.message(0x06, 0x01))
    console.suite = encrypted
    assert console.exchange(plain) == []


def test_wrong_message_checksums_and_addresses(bench: Bench) -> None:
    console = bench.login()
    message = console.message(0x06, 0x01)
    assert console.exchange(console.seal(0, message[:-1] + bytes((message[-1] ^ 1,)))) == []
    assert console.command(0x06, 0x99) == b"\xc1"
    assert console.command(0x2E, 0x01) == b"\xc1"
    assert console.command(0x06, 0x3B) == b"\xc7"


@given(st.binary(max_size=80))
def test_no_datagram_breaks_the_parser(data: bytes) -> None:
    parse(data)
    parse(b"\x06\x00\xff\x07" + data)
    parse(b"\x06\x00\xff\x06" + data)


def test_turned_bits_in_any_step_never_raise(bench: Bench) -> None:
    console = bench.login()
    dice = random.Random(7)
    seeds = [
        console.seal(0, console.message(0x0A, 0x43, bytes(6))),
        b"\x06\x00\xff\x07\x06\x10" + bytes(8) + struct.pack("<H", 32) + console.open_request(),
        b"\x06\x00\xff\x07\x06\x12" + bytes(8) + struct.pack("<H", 33) + bytes(33),
        b"\x06\x00\xff\x07" + bytes(9) + b"\x09" + console.message(0x06, 0x38, b"\x8e\x04"),
    ]
    for _ in range(2000):
        data = bytearray(dice.choice(seeds))
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        bench.endpoint.datagram_received(bytes(data[: dice.randrange(len(data) + 1)]), ADDRESS)
    bench.bmc.sessions.clear()
    assert bench.login().command(0x06, 0x01)[0] == 0


async def test_any_data_for_any_command_gets_a_completion_code(make_bench: Callable[..., Bench]) -> None:
    dice = random.Random(11)
    for netfn, number in TABLE:
        bench = make_bench(reset_s=0.0)
        console = bench.login()
        for length in range(24):
            if bench.bmc.sessions.get(console.session):
                console.command(netfn, number, dice.randbytes(length))
            if bench.bmc.sessions.get(console.session):
                console.command(netfn, number, bytes((1, 1, *bytes(length)))[: length + 1])
        await bench.bmc.close()
