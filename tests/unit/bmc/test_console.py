"""Recordings: what is on disk, how it is cut into boots, and how it reads."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from bmc.console.boots import boot, boots
from bmc.console.cast import asciicast
from bmc.console.picture import png
from bmc.console.plain import Plain
from bmc.console.render import LARGE, SMALL, clean_text, screen, screen_size, screen_text
from bmc.console.store import Chunk, Event, EventKind, Writer, entries, recordings

START = 1_800_000_000.25


def written(folder: Path, *parts: bytes | Event) -> Path:
    """Write `parts` one second apart into a ring at `folder`."""
    writer = Writer(folder, "n1")
    writer.open(START)
    for second, part in enumerate(parts):
        if isinstance(part, Event):
            writer.event(part)
        else:
            writer.data(START + second, part)
    writer.close()
    return folder


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    event = Event(START + 1, EventKind.LOST, "no answer")
    folder = written(tmp_path / "n1", b"one\xff", event, b"two")
    assert list(entries(folder)) == [Chunk(START, b"one\xff"), event, Chunk(START + 2, b"two")]


@pytest.mark.parametrize("cut", range(1, 17))
def test_a_file_torn_by_a_crash_keeps_all_but_its_last_record(tmp_path: Path, cut: int) -> None:
    folder = written(tmp_path, b"kept", b"torn")
    path = recordings(folder)[0].path
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(entries(folder)) == [Chunk(START, b"kept")]


def test_the_ring_drops_its_oldest_files_and_never_the_one_being_written(tmp_path: Path) -> None:
    writer = Writer(tmp_path, "n1", file_bytes=1000, ring_bytes=5000)
    writer.open(START)
    for number in range(100):
        writer.data(START + number, b"%03d" % number * 100)
    writer.close()
    files = recordings(tmp_path)
    assert sum(file.size for file in files) <= 5000 + 1500
    kept = b"".join(entry.data for entry in entries(tmp_path) if isinstance(entry, Chunk))
    assert kept.endswith(b"099" * 100)
    assert kept.startswith(kept[:3] * 100)


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.rec").write_text("mine")
    (tmp_path / "x.txt").write_text("mine")
    assert len(recordings(written(tmp_path, b"x"))) == 1


FIRMWARE = b"SeaBIOS (version 1.16)\r\niPXE 1.21.1\r\n"
KERNEL = b"[    0.000000] Linux version 6.1.0\r\nn1 login: "


@pytest.mark.parametrize("size", [1, 7, 40, 1000])
def test_boots_begin_where_firmware_speaks_after_a_kernel(tmp_path: Path, size: int) -> None:
    stream = FIRMWARE + KERNEL + b"\r\n" + FIRMWARE + KERNEL + b"\r\n" + KERNEL
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    found = boots(written(tmp_path, *pieces))
    assert [one.number for one in found] == [-2, -1, 0]
    assert b"".join(one.data for one in found) == stream


def test_a_boot_before_the_ring_is_none(tmp_path: Path) -> None:
    folder = written(tmp_path, FIRMWARE, KERNEL, b"\r\n", FIRMWARE, b"newest")
    last, before = boot(folder), boot(folder, -1)
    assert last is not None
    assert before is not None
    assert last.data.endswith(b"newest")
    assert KERNEL in before.data
    assert boot(folder, -2) is None
    assert boot(tmp_path / "nobody") is None


def test_a_power_mark_begins_a_boot(tmp_path: Path) -> None:
    mark = Event(START, EventKind.MARK, "power cycle")
    assert [one.data for one in boots(written(tmp_path, mark, b"silent one", mark, b"silent two"))] == [
        b"silent one",
        b"silent two",
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_terminal_control_is_taken_out_however_it_is_cut(size: int) -> None:
    data = b"\x1b[2J\x1b[1;33mgo\x1b[0m\x1b]0;title\x07\x1b(B ok\x07\x1b[3;1Hnext"
    plain = Plain()
    shown = b"".join(plain.feed(data[at : at + size]) for at in range(0, len(data), size))
    assert shown == b"\ngo ok\nnext"


def test_clean_text_stamps_every_line_and_shows_gaps() -> None:
    text = clean_text(
        [
            Chunk(START, b"\x1b[1mfirst\x1b[0m\r\nsec"),
            Chunk(START + 1, b"ond\r\n10%\r20%\r100%\r\nlog"),
            Event(START + 2, EventKind.LOST, "no answer"),
            Chunk(START + 3, "größer ".encode() + b"\xc9\xcd\xbb"),
        ]
    )
    assert text.splitlines() == [
        "2027-01-15T08:00:00.250Z first",
        "2027-01-15T08:00:00.250Z second",
        "2027-01-15T08:00:01.250Z 100%",
        "2027-01-15T08:00:01.250Z log",
        "2027-01-15T08:00:02.250Z --- lost: no answer ---",
        "2027-01-15T08:00:03.250Z größer ╔═╗",
    ]


def test_a_redrawn_line_comes_once() -> None:
    text = clean_text([Chunk(START, b"\x1b[5;1Hstarts in 5s" * 2 + b"\x1b[5;1Hstarts in 4s\r\n")])
    assert [line.split(" ", 1)[1] for line in text.splitlines()] == ["starts in 5s", "starts in 4s"]


def test_an_asciicast_holds_text_and_marks() -> None:
    smile = "☺".encode()
    stream: list[Chunk | Event] = [
        Chunk(START, b"a" + smile[:1]),
        Chunk(START + 0.5, smile[1:]),
        Event(START + 1, EventKind.STOLEN, "x"),
    ]
    header, *rest = [json.loads(line) for line in asciicast(stream, "n1")]
    assert header == {"version": 2, "width": 80, "height": 25, "timestamp": int(START), "title": "n1"}
    assert rest == [[0.0, "o", "a"], [0.5, "o", "☺"], [1.0, "m", "stolen: x"]]


def test_the_screen_is_as_large_as_its_cursor_goes() -> None:
    assert screen_size(b"\x1b[24;80Hx") == SMALL
    assert screen_size(b"\x1b[31;100Hx") == LARGE


def test_the_last_screen_is_what_a_terminal_would_show() -> None:
    shown = screen([Chunk(START, b"gone\x1b[2J\x1b[2;3HSetup\x1b[31;1HF1 Help")])
    assert screen_text(shown).splitlines()[1] == "  Setup"
    assert screen_text(shown).splitlines()[30] == "F1 Help"


def test_malformed_control_does_not_end_the_screen() -> None:
    shown = screen([Chunk(START, b"\x1b[?1;2m" + b"x" * 600 + b"\x1b[999999999999A\r\nend")])
    assert "end" in screen_text(shown)


@pytest.mark.parametrize(
    ("code", "letter", "back"),
    [
        (b"37;44", (170, 170, 170), (0, 0, 170)),
        (b"1;33", (255, 255, 85), (0, 0, 0)),
        (b"31", (170, 0, 0), (0, 0, 0)),
        (b"92", (85, 255, 85), (0, 0, 0)),
        (b"7", (0, 0, 0), (170, 170, 170)),
        (b"30;105", (0, 0, 0), (255, 85, 255)),
        (b"38;5;208", (255, 135, 0), (0, 0, 0)),
    ],
)
def test_the_picture_has_the_terminals_colours(
    code: bytes, letter: tuple[int, int, int], back: tuple[int, int, int]
) -> None:
    shown = screen([Chunk(START, b"\x1b[?25l\x1b[" + code + "m█ ".encode())], SMALL)
    picture = Image.open(io.BytesIO(png(shown)))
    width, height = picture.width // 80, picture.height // 25
    assert picture.getpixel((width // 2, height // 2)) == letter
    assert picture.getpixel((width + width // 2, height // 2)) == back


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_box_lines_join_across_cells(size: tuple[int, int]) -> None:
    shown = screen([Chunk(START, "\x1b[?25l──\r\n".encode())], size)
    picture = Image.open(io.BytesIO(png(shown)))
    assert (picture.width % size[0], picture.height % size[1]) == (0, 0)
    width, middle = picture.width // size[0], picture.height // size[1] // 2
    assert all(picture.getpixel((x, middle)) == (170, 170, 170) for x in range(2 * width))
