"""Logging in: suites, keys, refusals, sessions."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from tests.unit.lab_bmc.conftest import Bench, Refused

MakeBench = Callable[..., Bench]


@pytest.mark.parametrize("suite", [1, 2, 3, 15, 16, 17])
def test_logs_in_with_each_suite_that_is_enabled(make_bench: MakeBench, suite: int) -> None:
    console = make_bench(suites=(1, 2, 3, 15, 16, 17)).login(suite=suite)
    assert console.command(0x06, 0x01)[0] == 0


def test_says_no_match_for_a_suite_that_is_not_enabled(make_bench: MakeBench) -> None:
    bench = make_bench(suites=(3,))
    with pytest.raises(Refused) as refused:
        bench.console(suite=17).open()
    assert refused.value.status == 0x11


@pytest.mark.parametrize(
    ("algorithms", "status"), [((9, 1, 1), 0x04), ((1, 9, 1), 0x05), ((1, 1, 9), 0x10), ((1, 4, 1), 0x11)]
)
def test_tells_an_unknown_algorithm_from_an_unmatched_one(
    bench: Bench, algorithms: tuple[int, int, int], status: int
) -> None:
    console = bench.console()
    (answer,) = console.setup(0x10, console.open_request(algorithms))
    assert answer[1] == status


def test_takes_the_strongest_suite_when_the_console_leaves_it_open(bench: Bench) -> None:
    console = bench.console()
    request = console.open_request()[:8] + b"".join(struct.pack("<BxxB4x", kind, 0) for kind in range(3))
    (answer,) = console.setup(0x10, request)
    assert (answer[1], answer[16], answer[24], answer[32]) == (0, 3, 4, 1)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"user": "nobody"}, 0x0D),
        ({"user": "viewer", "password": "viewer-pw", "role": 4}, 0x0A),
        ({"role": 0}, 0x09),
        ({"user": "a" * 17}, 0x0C),
        ({"password": "wrong"}, 0x0F),
    ],
)
def test_refuses_with_the_specified_status(bench: Bench, changes: dict[str, object], status: int) -> None:
    with pytest.raises(Refused) as refused:
        bench.login(**changes)
    assert refused.value.status == status


def test_a_password_of_twenty_bytes_is_compared_whole(bench: Bench) -> None:
    with pytest.raises(Refused):
        bench.login(password="correct horse batte")
    bench.login()


def test_a_console_that_cannot_prove_the_password_gets_an_integrity_error(bench: Bench) -> None:
    console = bench.console()
    console.open()
    console.rakp1()
    payload = bytes((9, 0, 0, 0)) + struct.pack("<I", console.session) + bytes(32)
    (answer,) = console.setup(0x14, payload)
    assert answer[1] == 0x0F
    assert len(bench.bmc.sessions) == 0


def test_kg_enters_the_session_key(make_bench: MakeBench) -> None:
    bench = make_bench(kg="rack-key")
    assert bench.login(kg="rack-key").command(0x06, 0x01)[0] == 0
    with pytest.raises(AssertionError):
        bench.login(kg="")


def test_repeated_rakp3_is_answered_again_with_the_same_proof(bench: Bench) -> None:
    console = bench.console()
    console.open()
    payload = console.rakp3(console.rakp1())
    (again,) = console.setup(0x14, payload)
    assert again[1] == 0
    assert bench.bmc.sessions.opened == 1


def test_repeated_rakp1_voids_the_first_answer(bench: Bench) -> None:
    console = bench.console()
    console.open()
    first = console.rakp1()
    console.rakp1()
    with pytest.raises(Refused) as refused:
        console.rakp3(first)
    assert refused.value.status == 0x0F


def test_the_session_limit_is_answered_with_insufficient_resources(make_bench: MakeBench) -> None:
    bench = make_bench(session_limit=2)
    consoles = [bench.login() for _ in range(2)]
    with pytest.raises(Refused) as refused:
        bench.login()
    assert refused.value.status == 0x01
    assert consoles[0].command(0x06, 0x3C, struct.pack("<I", consoles[0].session)) == b"\0"
    bench.login()
    assert bench.bmc.sessions.closed == 1


def test_a_repeated_open_session_request_takes_no_second_slot(make_bench: MakeBench) -> None:
    console = make_bench(session_limit=1).console()
    (first,), (second,) = (console.setup(0x10, console.open_request()) for _ in range(2))
    assert first == second
    assert first[1] == 0


def test_a_silent_session_expires_and_frees_its_slot(make_bench: MakeBench) -> None:
    bench = make_bench(session_limit=1)
    bench.login()
    bench.clock.pass_by(59)
    with pytest.raises(Refused):
        bench.login()
    bench.clock.pass_by(2)
    bench.login()
    assert bench.bmc.sessions.expired == 1


def test_a_half_open_session_frees_its_slot_sooner(make_bench: MakeBench) -> None:
    bench = make_bench(session_limit=1)
    bench.console().open()
    with pytest.raises(Refused):
        bench.console(own=0xB1B2B3B4).open()
    bench.clock.pass_by(6)
    bench.login()


def test_a_session_begins_as_user_and_rises_to_its_limit(bench: Bench) -> None:
    console = bench.console(user="operator", password="operator-pw", role=3)
    console.open()
    console.rakp3(console.rakp1())
    assert console.command(0x00, 0x02, b"\x01") == b"\xd4"
    assert console.command(0x06, 0x3B, b"\x04") == b"\x81"
    assert console.command(0x06, 0x3B, b"\x01") == b"\x80"
    assert console.command(0x06, 0x3B, b"\x03") == b"\x00\x03"
    assert console.command(0x06, 0x3B, b"\x00") == b"\x00\x03"
    assert console.command(0x06, 0x47, b"\x02\x00") == b"\xd4"


def test_close_session_refuses_an_unknown_id_and_ends_another(bench: Bench) -> None:
    first, second = bench.login(), bench.login()
    assert first.command(0x06, 0x3C, struct.pack("<I", 0x01020304)) == b"\x87"
    assert first.command(0x06, 0x3C, struct.pack("<I", second.session)) == b"\0"
    assert second.exchange(second.seal(0, second.message(0x06, 0x01))) == []


def test_session_info_names_user_level_and_address(bench: Bench) -> None:
    console = bench.login(user="operator", password="operator-pw", role=3)
    answer = console.command(0x06, 0x3D, b"\x00")
    assert answer[2:7] == bytes((4, 1, 3, 3, 0x11))
    assert answer[7:11] == bytes((127, 0, 0, 9))
    assert struct.unpack_from("<H", answer, 17)[0] == 40_000
    assert len(console.command(0x06, 0x3D, b"\x05")) == 4


def test_cipher_suites_are_listed_in_chunks_before_a_login(make_bench: MakeBench) -> None:
    console = make_bench(suites=(1, 2, 3, 17)).console()
    message = console.message(0x06, 0x54, b"\x0e\x00\x80")
    (answer,) = console.exchange(b"\x06\x00\xff\x07" + bytes(9) + bytes((len(message),)) + message)
    assert answer[14:][6:-1] == bytes.fromhex("0001 c001014080 c002014180 c003014181 c0".replace(" ", ""))
    (answer,) = console.setup(0x00, console.message(0x06, 0x54, b"\x0e\x00\x81"))
    assert answer[6:-1] == bytes.fromhex("0001 11034481".replace(" ", ""))


def test_auth_capabilities_say_v2_only_to_who_asks_for_it(bench: Bench) -> None:
    console = bench.console()
    (answer,) = console.setup(0x00, console.message(0x06, 0x38, b"\x8e\x04"))
    assert answer[6:-1] == bytes((0, 1, 0x80, 0x04, 0x02, 0, 0, 0, 0))
    (answer,) = console.setup(0x00, console.message(0x06, 0x38, b"\x0e\x04"))
    assert answer[6:-1] == bytes((0, 1, 0, 0x04, 0, 0, 0, 0, 0))


def test_nothing_else_is_told_before_a_login(bench: Bench) -> None:
    console = bench.console()
    (answer,) = console.setup(0x00, console.message(0x00, 0x01))
    assert answer[6:-1] == b"\xd4"


def test_a_presence_ping_is_answered_and_acknowledged(bench: Bench) -> None:
    console = bench.console()
    ping = bytes.fromhex("060005060000 11be8042 0000".replace(" ", ""))
    acknowledgement, pong = console.exchange(ping)
    assert acknowledgement == b"\x06\x00\x05\x86"
    assert pong[:4] == b"\x06\x00\xff\x06"
    assert pong[8:10] == b"\x40\x42"
    assert pong[20] == 0x81
