"""The lab MAAS answers recorded requests as a real MAAS did.

Compared are the status, content type and other telling headers, the whole text of refusals, the
form of every body (keys and types, recursively) and the words that MAAS chose about machines.
Ids that differ from run to run are paired by host name.
"""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import pytest

from lab.maas import Delays, Image, MaasConfig, StubPower, User, start_maas
from tests.contract.lab_maas.replay import Replay, ReplayClock, load
from tests.contract.lab_maas.shape import differences, spoken_differences
from tests.contract.lab_maas.wire import Wire

USERS = {
    "warden": User(
        "warden", "warden@lab.invalid", True, "consumer1:token1:q8rTz2VbN4wKx7YcJm5sLd9gHf3pEa6u", "x"
    ),
    "visitor": User("visitor", "visitor@lab.invalid", False, "consumer2:token2:secret2", "x"),
}
CONFIG = MaasConfig(
    users=tuple(USERS.values()),
    images=(Image("ubuntu/noble", "ga-24.04"), Image("ubuntu/jammy", "ga-22.04")),
    subnets=(),
    # Disk erasing must outlast the requests that find a machine erasing.
    delays=Delays(power=0.01, testing=30.0, release=0.02, erase=6.0, rescue=0.02, abort=0.05),
    node_timeout=1e6,
)

# What differs, and why. Anything else that differs fails, and so does a line here that no longer does.
LISTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "009-boot-resources": (
        "the recorded MAAS had images made by a test factory, with properties named at random",
        tuple(f"[{n // 3}].key-{n + 1}: missing" for n in range(6)),
    ),
    "084-unlock": (
        "the recorded rack was a stub: the machine never asked it for a boot, which MAAS would have noted",
        ("rack7-n02.status_message: 'Deploying' recorded, 'Performing PXE boot' answered",),
    ),
}


async def test_answers_as_recorded(tell: Callable[[list[str]], None]) -> None:
    clock = ReplayClock()
    server = await start_maas(CONFIG, StubPower(), clock=clock)
    try:
        async with aiohttp.ClientSession() as session:
            answered = await Replay(server, Wire(session, server.url, None), clock, USERS).run()
    finally:
        await server.close()
    found = {f"{number:03}-{name}": tuple(lines) for (number, name), lines in answered.items()}
    assert {key: lines for key, lines in found.items() if lines} == {
        key: lines for key, (_, lines) in LISTED.items()
    }
    equal = sum(not lines for lines in found.values())
    tell(
        [
            f"{equal} of {len(found)} equal; listed differences: {len(LISTED)}",
            *(f"  {key}: {reason}" for key, (reason, _) in LISTED.items()),
        ]
    )


def test_every_recording_is_there() -> None:
    assert [one.number for one in load()] == list(range(1, 186))


@pytest.mark.parametrize(
    ("recorded", "got", "line"),
    [
        ({"a": 1}, {}, ".a: missing"),
        ({}, {"a": 1}, ".a: not recorded"),
        ({"a": 1}, {"a": None}, ".a: int recorded, NoneType answered"),
        ({"a": True}, {"a": 1}, ".a: bool recorded, int answered"),
        ({"a": [{"b": 1}]}, {"a": [{"b": "1"}]}, ".a[0].b: int recorded, str answered"),
        ([1, 2], ["x"], ": 2 members recorded, 1 answered, of other forms"),
    ],
)
def test_sees_a_difference_in_form(recorded: object, got: object, line: str) -> None:
    assert differences(recorded, got) == [line]


def test_sees_another_word_about_a_machine() -> None:
    recorded = {"hostname": "n", "status_name": "Ready", "owner": None}
    got = {"hostname": "n", "status_name": "Broken", "owner": None}
    assert spoken_differences(recorded, got) == ["n.status_name: 'Ready' recorded, 'Broken' answered"]
