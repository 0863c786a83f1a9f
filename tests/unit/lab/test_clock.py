"""The lab's NTP answers."""

from __future__ import annotations

import struct

from lab.nodes.clock import answer_time

NOW = 1_796_000_000.25


def request(first: int = 0x23) -> bytes:
    return bytes([first, 0, 6, 0]) + bytes(36) + b"\x01\x02\x03\x04\x05\x06\x07\x08"


def test_an_answer_carries_the_askers_stamp_and_this_machines_time() -> None:
    answer = answer_time(request(), NOW)
    assert answer is not None
    first, stratum, poll = answer[0], answer[1], answer[2]
    assert (first >> 3 & 7, first & 7, stratum, poll) == (4, 4, 2, 6)
    assert answer[24:32] == b"\x01\x02\x03\x04\x05\x06\x07\x08"
    seconds, fraction = struct.unpack("!II", answer[40:48])
    assert seconds - 2_208_988_800 == int(NOW)
    assert fraction == 2**30


def test_what_is_no_request_is_not_answered() -> None:
    assert answer_time(b"short", NOW) is None
    assert answer_time(request(0x24), NOW) is None  # a server's answer: two servers would never stop
