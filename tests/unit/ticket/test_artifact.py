"""Forms of evidence: each comes out redacted, and still what it was."""

from __future__ import annotations

import base64
import gzip
import io
import json

import pyte
import pytest
from PIL import Image

from bmc.console import picture
from provision.ticket.artifact import (
    Artifact,
    Cast,
    Json,
    JsonLines,
    Opaque,
    Packed,
    ScreenPicture,
    ScreenText,
    Text,
)
from provision.ticket.redact import Known, Profile, Redactor

KNOWN = Known(hosts=("gn-7q", "gn-8q"))
INTERNAL = Redactor(Profile.INTERNAL)


def redacted(artifact: Artifact) -> bytes:
    redactor = Redactor(Profile.VENDOR, KNOWN)
    for text in artifact.texts():
        redactor.learn(text)
    return artifact.rendered(redactor)


def screen(text: str, columns: int = 20, lines: int = 4) -> pyte.Screen:
    shown = pyte.Screen(columns, lines)
    pyte.Stream(shown).feed(text)
    return shown


def test_bytes_that_are_no_text_come_out_as_they_went_in() -> None:
    data = b"gn-7q \xff\xfe 10.0.0.1\n"
    assert Text(data).rendered(INTERNAL) == data
    assert redacted(Text(data)) == b"host-1 \xff\xfe ip-1\n"


def test_json_is_redacted_string_by_string_and_stays_json() -> None:
    value = {"gn-7q": ["x\ngn-8q: up", {"ip": "10.0.0.1", "n": 7, "none": None}], "text": 'a "gn-7q" b'}
    assert json.loads(redacted(Json(value))) == {
        "host-1": ["x\nhost-2: up", {"ip": "ip-1", "n": 7, "none": None}],
        "text": 'a "host-1" b',
    }


def test_the_key_of_a_member_says_what_it_names_and_the_value_is_replaced_elsewhere_too() -> None:
    value = {"Oem": {"UserName": "zeno"}, "log": "process of zeno", "actor": "admin", "text": "admin tools"}
    assert json.loads(redacted(Json(value))) == {
        "Oem": {"UserName": "user-1"}, "log": "process of user-1", "actor": "user-2", "text": "admin tools",
    }  # fmt: skip


def test_output_that_a_document_holds_as_base64_is_redacted_inside() -> None:
    value = {"stdout": {"base64": base64.b64encode(b"\xff gn-7q 10.0.0.1").decode()}}
    found = json.loads(redacted(Json(value)))
    assert base64.b64decode(found["stdout"]["base64"]) == b"\xff host-1 ip-1"


def test_json_lines_are_one_document_a_line() -> None:
    lines = redacted(JsonLines([{"node": "gn-7q"}, {"text": "two\nlines"}])).splitlines()
    assert [json.loads(line) for line in lines] == [{"node": "host-1"}, {"text": "two\nlines"}]


def test_a_name_that_came_in_pieces_is_replaced_in_a_cast_and_times_stay() -> None:
    rows = [(0.0, "o", "boot of g"), (0.5, "m", "power cycle"), (1.0, "o", "n-7"), (1.5, "o", "q at 10.0."),
            (2.0, "o", "0.1 done")]  # fmt: skip
    data = redacted(Cast({"version": 2, "title": "gn-7q"}, rows))
    header, *found = (json.loads(line) for line in data.splitlines())
    assert header == {"version": 2, "title": "host-1"}
    assert [row[:2] for row in found] == [[at, kind] for at, kind, _ in rows]
    assert "".join(row[2] for row in found if row[1] == "o") == "boot of host-1 at ip-1 done"


def test_a_screen_keeps_its_form_and_its_colours() -> None:
    shown = screen("\x1b[31mred\x1b[0m gn-7q \x1b[32mgreen\r\n\x1b[0mgn-7q login: ")
    assert redacted(ScreenText(shown)) == b"red host-1 green\nhost-1 login:\n"
    image = Image.open(io.BytesIO(redacted(ScreenPicture(shown))))
    whole = Image.open(io.BytesIO(picture.png(shown)))
    assert image.size == whole.size
    expected = screen("\x1b[31mred\x1b[0m host-1 \x1b[32mgreen\r\n\x1b[0mhost-1 login: ")
    expected.cursor.x = shown.cursor.x
    assert image.tobytes() == Image.open(io.BytesIO(picture.png(expected))).tobytes()


def test_a_name_that_goes_on_in_the_next_row_is_replaced() -> None:
    shown = screen("0123456789 up is gn-7q login: ", columns=19)
    assert b"gn-" not in redacted(ScreenText(shown))
    assert b"7q" not in redacted(ScreenText(shown))


def test_a_screen_is_left_as_it_is_for_ourselves() -> None:
    shown = screen("gn-7q login: ")
    assert ScreenPicture(shown).rendered(INTERNAL) == picture.png(shown)


def test_compressed_text_is_redacted_inside_and_the_same_every_time() -> None:
    packed = Packed(gzip.compress(b"host gn-7q"))
    assert gzip.decompress(redacted(packed)) == b"host host-1"
    assert redacted(packed) == redacted(packed)


@pytest.mark.parametrize(
    "data", [b"no gzip", gzip.compress(b"x" * 5000)[:20], gzip.compress(b"xyz")[:10] + b"\xff" * 20]
)
def test_what_is_no_gzip_is_said(data: bytes) -> None:
    with pytest.raises(ValueError, match="no gzip file"):
        list(Packed(data).texts())


def test_what_nobody_can_redact_comes_as_it_is() -> None:
    assert redacted(Opaque(b"gn-7q")) == b"gn-7q"
