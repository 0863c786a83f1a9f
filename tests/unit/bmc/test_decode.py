"""Records become values: names, scales, thresholds, times; and broken ones stay single."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from bmc.ipmi.decode import EventDecoder, SensorTable, fru_fields, reading, sensor_table


def checked(body: bytes) -> bytes:
    """Pad to eight bytes, set the length, add the checksum: an area of a FRU."""
    size = -(-(len(body) + 1) // 8)
    body = (body[:1] + bytes((size,)) + body[2:]).ljust(8 * size - 1, b"\x00")
    return body + bytes((-sum(body) & 0xFF,))


def text(value: str) -> bytes:
    return bytes((0xC0 | len(value),)) + value.encode("latin-1")


CHASSIS = checked(b"\x01\x00\x17" + text("PN-1") + text("SN-CH") + b"\xc1")
BOARD = checked(
    b"\x01\x00\x00\x10\x20\x30" + b"".join(map(text, ("Maker", "Board", "SN-B", "PN-B", ""))) + b"\xc1"
)
PRODUCT = checked(
    b"\x01\x00\x00" + b"".join(map(text, ("Maker", "Model", "PN-P", "2", "SN-P", "", ""))) + b"\xc1"
)


def fru(chassis: bytes = CHASSIS, board: bytes = BOARD, product: bytes = PRODUCT) -> bytes:
    places = (1, 1 + len(chassis) // 8, 1 + (len(chassis) + len(board)) // 8)
    head = bytes((1, 0, *places, 0, 0))
    return head + bytes((-sum(head) & 0xFF,)) + chassis + board + product


def test_reads_all_areas_of_a_fru() -> None:
    fields = fru_fields(fru())
    assert fields["chassis serial"] == "SN-CH"
    assert fields["board serial"] == "SN-B"
    assert fields["product name"] == "Model"
    assert "problem" not in fields


def test_an_area_with_a_bad_checksum_is_left_out_and_named() -> None:
    fields = fru_fields(fru(chassis=CHASSIS[:-1] + b"\x00"))
    assert "chassis serial" not in fields
    assert fields["product serial"] == "SN-P"
    assert fields["problem"] == "chassis area has a bad checksum"


def test_an_area_cut_short_is_left_out_and_named() -> None:
    fields = fru_fields(fru()[:-8])
    assert fields["board serial"] == "SN-B"
    assert fields["problem"] == "product area cut short"


@pytest.mark.parametrize("data", [b"", b"\xff" * 64, bytes(64)])
def test_an_empty_device_has_no_fields(data: bytes) -> None:
    assert fru_fields(data) == {}


def test_a_broken_header_is_named() -> None:
    assert fru_fields(b"\x01\x02\x03\x04\x05\x06\x07\x08") == {"problem": "the header is broken"}


def full_record(name: bytes = b"CPU1 Temp", coding: int = 0xC0, **changes: int) -> bytes:
    """A full sensor record: temperature, unsigned, reading times `m`."""
    body = bytearray(43)
    body[:9] = bytes((0x20, 0, 0x31, 3, 1, 0x7F, 0x68, 1, 1))
    body[13] = 0x3F  # readable thresholds
    body[16] = 1  # degrees Celsius
    body[19] = changes.get("m", 1)
    body[24] = changes.get("exponents", 0)
    body[31:37] = bytes((120, 100, 90, 0, 5, 10))
    body[42] = coding | len(name)
    record = bytes(body) + name
    return struct.pack("<HBBB", 1, 0x51, 1, len(record)) + record


def only(record: bytes) -> SensorTable:
    table = sensor_table((record,))
    assert table.unread == 0
    return table


def test_scales_readings_and_thresholds() -> None:
    sensor = only(full_record(m=5, exponents=0xF0)).readable[0]
    got = reading(sensor, b"\x64\xc0\xc0")
    assert (got.name, got.kind, got.value, got.unit, got.health) == (
        "CPU1 Temp",
        "Temperature",
        50.0,
        "°C",
        "ok",
    )
    assert got.thresholds == {
        "upper non-recoverable": 60.0,
        "upper critical": 50.0,
        "upper non-critical": 45.0,
        "lower non-recoverable": 0.0,
        "lower critical": 2.5,
        "lower non-critical": 5.0,
    }


@pytest.mark.parametrize(
    ("state", "health"), [(0x00, "ok"), (0x08, "warning"), (0x10, "critical"), (0x20, "failed")]
)
def test_health_follows_the_thresholds_passed(state: int, health: str) -> None:
    sensor = only(full_record()).readable[0]
    assert reading(sensor, bytes((0x64, 0xC0, state))).health == health


@pytest.mark.parametrize("answer", [b"", b"\x64", b"\x64\xe0\x00", b"\x64\x00\x00"])
def test_a_sensor_that_gives_nothing_is_unknown(answer: bytes) -> None:
    got = reading(only(full_record()).readable[0], answer)
    assert (got.value, got.health) == (None, "unknown")


def test_a_name_in_packed_six_bit_letters_is_read() -> None:
    packed = int.from_bytes(b"", "little")
    for place, letter in enumerate("FAN 12AB"):
        packed |= (ord(letter) - 0x20) << 6 * place
    assert only(full_record(packed.to_bytes(6, "little"), 0x80)).readable[0].name == "FAN 12AB"


def test_a_name_that_is_no_ascii_is_still_a_name() -> None:
    assert only(full_record(b"Temp \xb0C")).readable[0].name == "Temp ?C"


def test_a_broken_record_is_counted_and_hides_no_other() -> None:
    table = sensor_table((b"", full_record()[:20], full_record()))
    assert len(table.readable) == 1
    assert table.unread == 2


def event(seconds: int = 1_790_000_000, kind: int = 0x02, tail: bytes = b"\x0c\x61\x6f\xa0\xff\x03") -> bytes:
    return struct.pack("<HBIHB", 7, kind, seconds, 0x20, 4) + tail


def test_decodes_an_event() -> None:
    got = EventDecoder(SensorTable()).decode(event())
    assert got.record_id == 7
    assert got.time == datetime.fromtimestamp(1_790_000_000, UTC)
    assert got.sensor == "Memory #0x61"
    assert got.event == "Correctable error"
    assert (got.severity, got.asserted, got.raw) == ("warning", True, event())


@pytest.mark.parametrize("seconds", [0, 131, 0x1FFFFFFF, 0xFFFFFFFF])
def test_a_clock_that_was_not_set_gives_no_time(seconds: int) -> None:
    assert EventDecoder(SensorTable()).decode(event(seconds)).time is None


def test_says_reading_and_threshold_in_the_sensors_unit() -> None:
    table = only(full_record())
    got = EventDecoder(table).decode(event(tail=b"\x01\x31\x01\x59\x66\x64"))
    assert got.sensor == "CPU1 Temp"
    assert got.event.endswith("(reading 102 °C, threshold 100 °C)")
    assert got.severity == "critical"


def test_a_deassertion_is_told() -> None:
    assert not EventDecoder(SensorTable()).decode(event(tail=b"\x0c\x61\xef\xa0\xff\x03")).asserted


@pytest.mark.parametrize("kind", [0xC0, 0xDF, 0xE0, 0xFF])
def test_a_vendors_own_record_is_shown_as_hex(kind: int) -> None:
    got = EventDecoder(SensorTable()).decode(event(kind=kind))
    assert (got.sensor, got.severity) == ("OEM", "unknown")
    assert event()[7:].hex() in got.event
