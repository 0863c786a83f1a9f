"""Timers follow the round trip; a privilege that is refused is told as such."""

from __future__ import annotations

import pytest

from bmc.capability import BmcTarget, Credential
from bmc.errors import CommandRefused, PrivilegeTooLow
from bmc.ipmi.endpoint import Endpoint
from bmc.ipmi.measure import RoundTrip
from bmc.ipmi.session import COMMAND_S, Command, Session


def test_waits_about_as_long_as_the_bmc_takes() -> None:
    trip = RoundTrip()
    for _ in range(30):
        trip.measure(1.0)
    assert 1.0 < trip.wait_s() < 1.1


def test_waits_no_shorter_than_a_quarter_and_no_longer_than_three_seconds() -> None:
    quick, slow = RoundTrip(), RoundTrip()
    for _ in range(30):
        quick.measure(0.001)
    slow.measure(60.0)
    assert (quick.wait_s(), slow.wait_s()) == (0.25, 3.0)


def test_a_wait_that_was_too_short_is_not_tried_again_until_something_is_measured() -> None:
    trip = RoundTrip()
    first = trip.wait_s()
    trip.backed_off = 1.5 * first  # what a retransmission leaves behind
    assert trip.wait_s() == 1.5 * first
    trip.measure(0.01)
    assert trip.wait_s() < first


class Refusing(Session):
    """Is let in, and then not up to the level that it asks for."""

    async def _open_with_any(self) -> None: ...

    async def command(self, command: Command, data: bytes = b"", deadline_s: float = COMMAND_S) -> bytes:
        raise CommandRefused(self.node, self.host, command.what, 0x81)


async def test_a_level_that_is_refused_after_the_login_is_too_little_privilege() -> None:
    session = Refusing(Endpoint(), BmcTarget("n1", "bmc1", Credential("viewer", "secret")))
    with pytest.raises(PrivilegeTooLow) as caught:
        await session.open(probed=True)
    assert caught.value.wanted == "level administrator"
