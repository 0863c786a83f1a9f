"""SEL, SDR, sensors, FRU, LAN and users."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from lab.bmc.sensor_model import SENSORS
from lab.errors import BadRequest
from tests.unit.lab_bmc.conftest import Bench, Console, Refused, until

MakeBench = Callable[..., Bench]


def sel_entry(
    console: Console, record_id: int, *, reservation: int = 0, offset: int = 0, count: int = 0xFF
) -> bytes:
    return console.command(0x0A, 0x43, struct.pack("<HHBB", reservation, record_id, offset, count))


def reserve(console: Console, command: int = 0x42) -> int:
    answer = console.command(0x0A, command)
    return int.from_bytes(answer[1:3], "little")


def test_a_thousand_events_are_read_in_order(bench: Bench) -> None:
    console = bench.login()
    for number in range(1, 1_000):
        bench.bmc.sel.add(0x01, 0x01, struct.pack("<H", number) + b"\xff", at=1_700_000_000 + number)
    info = console.command(0x0A, 0x40)
    assert struct.unpack_from("<H", info, 2)[0] == 1_000
    seen, record_id = 0, 0
    while record_id != 0xFFFF:
        answer = sel_entry(console, record_id)
        assert answer[0] == 0
        following, own = struct.unpack_from("<HH", answer, 1)
        assert own == seen + 1
        seen, record_id = seen + 1, following
    assert seen == 1_000
    assert sel_entry(console, 0xFFFF)[3:5] == struct.pack("<H", 1_000)


def test_a_full_log_refuses_and_says_that_it_overflowed(make_bench: MakeBench) -> None:
    bench = make_bench(sel_capacity=2)
    console = bench.login()
    record = bytes((0, 0, 0x02)) + bytes(13)
    assert console.command(0x0A, 0x44, record)[0] == 0
    assert console.command(0x0A, 0x44, record) == b"\xc4"
    assert console.command(0x0A, 0x40)[14] & 0x80


def test_partial_reads_need_a_reservation(bench: Bench) -> None:
    console = bench.login()
    whole = sel_entry(console, 1)[3:]
    assert sel_entry(console, 1, offset=4, count=4) == b"\xc5"
    ticket = reserve(console)
    assert sel_entry(console, 1, reservation=ticket, offset=4, count=4)[3:] == whole[4:8]
    assert sel_entry(console, 1, reservation=ticket, offset=10, count=9) == b"\xc9"
    assert sel_entry(console, 7) == b"\xcb"


def test_clearing_needs_the_right_words_and_a_reservation_and_takes_its_time(make_bench: MakeBench) -> None:
    bench = make_bench(sel_erase_s=2.0)
    console = bench.login()
    ticket = struct.pack("<H", reserve(console))
    assert console.command(0x0A, 0x47, ticket + b"CLX\xaa") == b"\xcc"
    assert console.command(0x0A, 0x47, b"\x00\x00CLR\xaa") == b"\xc5"
    assert console.command(0x0A, 0x47, ticket + b"CLR\xaa") == b"\x00\x00"
    assert console.command(0x0A, 0x40) == b"\x81"
    assert console.command(0x0A, 0x47, ticket + b"CLR\x00") == b"\x00\x00"
    bench.clock.pass_by(2)
    assert console.command(0x0A, 0x47, ticket + b"CLR\x00") == b"\x00\x01"
    assert sel_entry(console, 0)[3 + 13] == 0x02  # "log cleared" is the first event of the new log


def test_deleting_an_entry_keeps_the_ids_of_the_others(bench: Bench) -> None:
    console = bench.login()
    for _ in range(3):
        bench.bmc.sel.add(0x01, 0x01, b"\x01\xff\xff")
    ticket = reserve(console)
    assert console.command(0x0A, 0x46, struct.pack("<HH", ticket, 2)) == b"\x00\x02\x00"
    assert sel_entry(console, 1)[1:3] == b"\x03\x00"
    assert sel_entry(console, 2) == b"\xcb"
    assert console.command(0x0A, 0x46, struct.pack("<HH", ticket, 3)) == b"\xc5"


def test_records_of_a_console_are_stamped_with_the_bmcs_clock(bench: Bench) -> None:
    console = bench.login()
    assert console.command(0x0A, 0x49, struct.pack("<I", 1_800_000_000)) == b"\0"
    assert console.command(0x0A, 0x48)[1:] == struct.pack("<I", 1_800_000_000)
    console.command(0x0A, 0x44, bytes((0, 0, 0xC1, 1, 2, 3, 4)) + b"\xa2\x02\x00" + bytes(6))
    console.command(0x0A, 0x44, bytes((0, 0, 0xE0)) + b"thirteenbytes")
    assert sel_entry(console, 2)[3:][3:10] == struct.pack("<I", 1_800_000_000) + b"\xa2\x02\x00"
    assert sel_entry(console, 3)[3:][3:] == b"thirteenbytes"


def test_fault_clock_1970_is_cured_by_setting_the_clock_until_the_next_reset(make_bench: MakeBench) -> None:
    bench = make_bench(reset_s=1.0)
    bench.bmc.set_fault("clock-1970")
    console = bench.login()
    assert struct.unpack("<I", console.command(0x0A, 0x48)[1:])[0] < 100
    console.command(0x0A, 0x49, struct.pack("<I", 1_800_000_000))
    assert bench.bmc.clock.now() == 1_800_000_000
    bench.bmc.cold_reset()
    assert bench.bmc.clock.now() == 0
    bench.bmc.clear_faults()
    assert bench.bmc.clock.now() == int(bench.clock.wall())


def test_the_repository_is_walked_by_parts(bench: Bench) -> None:
    console = bench.login()
    ticket, record_id, kinds, names = reserve(console, 0x22), 0, [], []
    while record_id != 0xFFFF:
        head = console.command(0x0A, 0x23, struct.pack("<HHBB", ticket, record_id, 0, 5))
        following, kind, length = struct.unpack_from("<H", head, 1)[0], head[6], head[7]
        body = b""
        while len(body) < length:
            request = struct.pack("<HHBB", ticket, record_id, 5 + len(body), min(16, length - len(body)))
            body += console.command(0x0A, 0x23, request)[3:]
        kinds.append(kind)
        names.append(body)
        record_id = following
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        0x12: 1,
        0x01: sum(model.analog for model in SENSORS),
        0x02: sum(not model.analog for model in SENSORS),
        0x11: 3,
    }
    assert any(body.endswith(b"GPU7 Temp") for body in names)
    assert console.command(0x0A, 0x23, struct.pack("<HHBB", 0, 1, 5, 5)) == b"\xc5"


async def test_readings_follow_the_power(bench: Bench) -> None:
    console = bench.login()
    fan, inlet, psu, cpu = (b"\x30", b"\x01", b"\x52", b"\x60")
    assert console.command(0x04, 0x2D, fan)[2] & 0x20
    assert not console.command(0x04, 0x2D, inlet)[2] & 0x20
    assert console.command(0x04, 0x2D, psu)[3] & 0x01
    assert console.command(0x04, 0x2D, cpu)[2] & 0x20
    await bench.chassis.power_on(boot_device=None)
    assert 70 < console.command(0x04, 0x2D, fan)[1] < 90
    assert console.command(0x04, 0x2D, cpu)[3:] == b"\x80\x80"
    assert console.command(0x04, 0x2D, b"\xee") == b"\xcb"


def test_a_crossed_threshold_shows_and_is_logged_both_ways(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.sensors.force("GPU3 Temp", 95)
    assert console.command(0x04, 0x2D, b"\x13") == bytes((0, 95, 0xC0, 0xC0 | 0x18))
    asserted = [record for record in bench.bmc.sel.records if record[11] == 0x13]
    assert [(record[12], record[13] & 0x0F, record[14]) for record in asserted] == [(1, 7, 95), (1, 9, 95)]
    bench.bmc.sensors.force("GPU3 Temp", 40)
    assert [record[12] for record in bench.bmc.sel.records if record[11] == 0x13] == [1, 1, 0x81, 0x81]
    bench.bmc.sensors.force("PS1 Status", 0x09)
    assert bench.bmc.sel.records[-1][10:14] == b"\x08\x52\x6f\x03"
    with pytest.raises(BadRequest, match="no sensor"):
        bench.bmc.sensors.force("GPU9 Temp", 1)


def test_thresholds_can_be_read_and_set(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.sensors.force("Inlet Temp", 22)
    assert console.command(0x04, 0x27, b"\x01") == bytes((0, 0x1B, 3, 0, 0, 43, 47, 0))
    assert console.command(0x04, 0x26, bytes((1, 0x08, 0, 0, 0, 20, 0, 0))) == b"\0"
    assert console.command(0x04, 0x2D, b"\x01")[3] == 0xC8
    assert console.command(0x04, 0x26, bytes((1, 0x20, 0, 0, 0, 0, 0, 90))) == b"\xcd"
    assert console.command(0x04, 0x27, b"\x52") == b"\xcd"


def fru_bytes(console: Console, size: int) -> bytes:
    total = int.from_bytes(console.command(0x0A, 0x10, b"\x00")[1:3], "little")
    data = b""
    while len(data) < total:
        answer = console.command(0x0A, 0x11, struct.pack("<BHB", 0, len(data), size))
        assert answer[0] == 0
        data += answer[2:]
    return data


def area(data: bytes, index: int) -> bytes:
    start = data[index] * 8
    return data[start : start + data[start + 1] * 8]


def test_fru_areas_are_sound_and_name_the_machine(bench: Bench) -> None:
    data = fru_bytes(bench.login(), 16)
    assert sum(data[:8]) & 0xFF == 0
    for index in (2, 3, 4):
        assert sum(area(data, index)) & 0xFF == 0
    assert b"LAB-A0001" in area(data, 2)
    assert b"LAB-A0001" in area(data, 4)


def test_fault_fru_bad_checksum_spoils_the_board_area_alone(bench: Bench) -> None:
    bench.bmc.set_fault("fru-bad-checksum")
    data = fru_bytes(bench.login(), 64)
    assert [sum(area(data, index)) & 0xFF == 0 for index in (2, 3, 4)] == [True, False, True]


def test_a_fru_chunk_that_is_too_large_is_refused(make_bench: MakeBench) -> None:
    console = make_bench(fru_read_limit=16).login()
    assert console.command(0x0A, 0x11, b"\x00\x00\x00\x20") == b"\xc8"
    assert len(fru_bytes(console, 16)) == 512
    assert console.command(0x0A, 0x11, b"\x07\x00\x00\x10") == b"\xcb"
    assert console.command(0x0A, 0x12, b"\x00\x00\x00\x10") == b"\x80"


def test_lan_parameters_give_address_and_suites(bench: Bench) -> None:
    console = bench.login()
    assert console.command(0x0C, 0x02, b"\x01\x03\x00\x00") == b"\x00\x11\x7f\x00\x00\x01"
    assert console.command(0x0C, 0x02, b"\x01\x17\x00\x00")[2:5] == b"\x00\x03\x11"
    assert console.command(0x0C, 0x02, b"\x01\x99\x00\x00") == b"\x80"
    assert console.command(0x0C, 0x01, b"\x01\x16\x05") == b"\x82"
    assert console.command(0x0C, 0x01, b"\x01\x0c\x0a\x00\x00\x01") == b"\0"
    assert console.command(0x0C, 0x02, b"\x01\x0c\x00\x00")[2:] == b"\x0a\x00\x00\x01"


def test_a_new_user_can_log_in_and_a_disabled_one_cannot(bench: Bench) -> None:
    console = bench.login()
    assert console.command(0x06, 0x45, b"\x09" + b"night".ljust(16, b"\0")) == b"\0"
    assert console.command(0x06, 0x47, b"\x89\x02" + b"shift".ljust(20, b"\0")) == b"\0"
    assert console.command(0x06, 0x47, b"\x89\x03" + b"shift".ljust(20, b"\0")) == b"\0"
    assert console.command(0x06, 0x47, b"\x89\x03" + b"other".ljust(20, b"\0")) == b"\x80"
    assert console.command(0x06, 0x43, b"\x91\x09\x03\x00") == b"\0"
    assert console.command(0x06, 0x47, b"\x09\x01") == b"\0"
    bench.login(user="night", password="shift", role=3)
    assert console.command(0x06, 0x47, b"\x09\x00") == b"\0"
    with pytest.raises(Refused) as refused:
        bench.login(user="night", password="shift", role=3)
    assert refused.value.status == 0x0D
    assert console.command(0x06, 0x44, b"\x01\x09")[3:] == b"\x01\x13"


def test_the_log_counts_commands_and_hides_secrets(bench: Bench) -> None:
    console = bench.login()
    bench.bmc.log.clear()
    console.command(0x06, 0x47, b"\x89\x02" + b"shift".ljust(20, b"\0"))
    console.command(0x00, 0x01)
    assert bench.bmc.log.total == 2
    assert bench.bmc.log.count(0x00, 0x01) == 1
    assert bench.bmc.log.count(0x00, 0x02) == 0
    assert [entry.data for entry in bench.bmc.log.recent] == [b"***", b""]
    assert {entry.user for entry in bench.bmc.log.recent} == {"admin"}
    assert "shift" not in repr(bench.bmc.log.recent) + repr(bench.bmc.spec) + repr(list(bench.bmc.users))


async def test_dcmi_power_reading_follows_the_power(bench: Bench) -> None:
    console = bench.login()
    assert struct.unpack_from("<H", console.command(0x2C, 0x02, b"\xdc\x01\x00\x00"), 2)[0] < 100
    await bench.chassis.power_on(boot_device=None)
    await until(lambda: bench.chassis.powered)
    assert struct.unpack_from("<H", console.command(0x2C, 0x02, b"\xdc\x01\x00\x00"), 2)[0] > 3000
    assert console.command(0x2C, 0x02, b"\xdd\x01\x00\x00") == b"\xcc"
