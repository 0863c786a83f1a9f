"""Serial over LAN: whatever the network does to packets, every byte comes once and in order."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmc.errors import Busy, CommandRefused, Occupied, Unsupported
from bmc.ipmi import commands
from bmc.ipmi.session import COMMAND_S, Command
from bmc.ipmi.sol import Sol


class Session:
    """Stands for an open session: answers commands from a script, keeps what SOL sends."""

    def __init__(self, *script: bytes | int) -> None:
        self.node, self.host = "n1", "bmc"
        self.on_sol = None
        self.sent: list[bytes] = []
        self.commands: list[Command] = []
        self._script = list(script)

    def send_sol(self, payload: bytes) -> None:
        self.sent.append(payload)

    async def command(self, command: Command, data: bytes = b"", deadline_s: float = COMMAND_S) -> bytes:
        self.commands.append(command)
        answer = self._script.pop(0)
        if isinstance(answer, int):
            raise CommandRefused(self.node, self.host, command.what, answer)
        return answer


class Bench:
    """A Sol whose packets the test makes; `got` is what its sink was given."""

    def __init__(self) -> None:
        self.session = Session()
        self.got = b""
        self.full = False
        self.sol = Sol(self.session, self._keep)  # type: ignore[arg-type]
        self._sequence = 0

    def _keep(self, data: bytes) -> None:
        if self.full:
            raise OSError(28, "no space left")
        self.got += data

    def packet(self, number: int, data: bytes, status: int = 0, sequence: int | None = None) -> int:
        """Deliver a packet; return its session sequence number."""
        if sequence is None:
            self._sequence += 1
            sequence = self._sequence
        self.sol._received(sequence, bytes((number, 0, 0, status)) + data)
        return sequence

    @property
    def acknowledged(self) -> tuple[int, int]:
        """Number and count of the last acknowledgement."""
        return self.session.sent[-1][1], self.session.sent[-1][2]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_acknowledges_what_was_kept(bench: Bench) -> None:
    bench.packet(1, b"hello")
    assert bench.got == b"hello"
    assert bench.session.sent == [bytes((0, 1, 5, 0))]


def test_a_retransmission_is_acknowledged_again_and_kept_once(bench: Bench) -> None:
    bench.packet(1, b"hello")
    bench.packet(1, b"hello")
    assert bench.got == b"hello"
    assert bench.session.sent == [bytes((0, 1, 5, 0))] * 2


def test_growth_comes_once_from_a_bmc_that_counts(bench: Bench) -> None:
    bench.packet(1, b"one ")
    bench.packet(1, b"one two ")  # the first acknowledgement was late, not lost
    assert bench.acknowledged == (1, 4)
    bench.packet(2, b"two three")
    assert bench.got == b"one two three"


def test_growth_comes_once_from_a_bmc_that_does_not_count(bench: Bench) -> None:
    bench.packet(1, b"one ")
    bench.packet(1, b"one two ")
    bench.packet(2, b"three")
    assert bench.got == b"one two three"


@pytest.mark.parametrize("next_packet", [b"two three", b"three"])
def test_growth_that_waited_too_long_is_shown_and_still_comes_once(bench: Bench, next_packet: bytes) -> None:
    bench.packet(1, b"one ")
    bench.packet(1, b"one two ")
    bench.sol.keep_tail()
    assert bench.got == b"one two "
    bench.packet(2, next_packet)
    assert bench.got == b"one two three"


def test_a_stray_copy_of_an_old_packet_is_not_taken(bench: Bench) -> None:
    old = bench.packet(1, b"one")
    bench.packet(2, b"two")
    bench.packet(1, b"one", sequence=old)
    assert bench.got == b"onetwo"
    assert len(bench.session.sent) == 2


def test_nothing_is_acknowledged_that_the_disk_did_not_take(bench: Bench) -> None:
    bench.full = True
    bench.packet(1, b"lost")
    assert bench.session.sent == []
    bench.full = False
    bench.packet(1, b"lost not")
    assert bench.got == b"lost not"
    assert bench.acknowledged == (1, 8)


def test_an_overrun_of_the_bmc_is_counted(bench: Bench) -> None:
    bench.packet(1, b"x", status=0x08)
    assert bench.sol.overruns == 1


def test_the_bmc_ending_the_console_is_noticed(bench: Bench) -> None:
    bench.packet(0, b"", status=0x50)
    assert bench.sol.ended.is_set()


@pytest.mark.parametrize("payload", [b"", b"\x01", b"\x01\x00\x00"])
def test_a_packet_without_a_header_is_ignored(bench: Bench, payload: bytes) -> None:
    bench.sol._received(1, payload)
    assert bench.got == b""
    assert bench.session.sent == []


class Sender:
    """A BMC that sends `text` over a network that loses, doubles and delays; grows what it repeats."""

    def __init__(self, text: bytes, *, counts: bool) -> None:
        self.text, self.counts = text, counts
        self.base, self.number, self.first, self.size = 0, 1, 0, 0

    def data(self, grow: int) -> bytes:
        self.size = min(max(self.size, 1) + grow, len(self.text) - self.base)
        return self.text[self.base : self.base + self.size]

    def acknowledged(self, number: int, count: int) -> None:
        if number == self.number and self.size:
            self.base += count if self.counts else self.size
            self.number, self.size = self.number % 15 + 1, 0


@given(
    st.binary(min_size=1, max_size=400),
    st.lists(st.tuples(st.integers(1, 60), st.sampled_from("slda")), min_size=1, max_size=400),
)
def test_every_byte_once_whatever_the_network_does(text: bytes, steps: list[tuple[int, str]]) -> None:
    bench, sender = Bench(), Sender(text, counts=True)
    delayed: list[bytes] = []
    for grow, what in steps:
        if sender.base < len(text):
            before = len(bench.session.sent)
            sequence = bench.packet(sender.number, sender.data(grow)) if what != "l" else None
            if sequence is not None and what == "d":
                bench.packet(sender.number, sender.data(0), sequence=sequence)
            delayed += bench.session.sent[before:]
        if what == "a" and delayed:
            answer = delayed.pop(0)
            sender.acknowledged(answer[1], answer[2])
        elif what == "l" and delayed:
            delayed.pop()
    assert bench.got == text[: len(bench.got)]
    assert len(bench.got) >= sender.base


def run(session: Session, *, steal: bool = False, own: bytes = b"") -> Sol:
    sol = Sol(session, lambda _data: None)  # type: ignore[arg-type]
    asyncio.run(sol.activate(steal=steal, own=own))
    return sol


def test_a_console_in_use_is_not_taken() -> None:
    with pytest.raises(Busy) as caught:
        run(Session(0x80))
    assert caught.value.occupied is Occupied.CONSOLE


def test_a_console_in_use_is_taken_when_asked_to() -> None:
    session = Session(0x80, b"", bytes(12), b"\x01\x02\x03\x04")
    assert run(session, steal=True).owner == b"\x01\x02\x03\x04"
    assert session.commands[1] is commands.DEACTIVATE_PAYLOAD


def test_a_console_held_by_our_own_dead_session_is_taken_back() -> None:
    session = Session(0x80, b"mine", b"", bytes(12), b"new!")
    assert run(session, own=b"mine").owner == b"new!"


def test_a_console_held_by_another_is_left_even_where_we_had_it_before() -> None:
    with pytest.raises(Busy):
        run(Session(0x80, b"them"), own=b"mine")


def test_a_bmc_with_sol_switched_off_says_so() -> None:
    with pytest.raises(Unsupported):
        run(Session(0x81))
