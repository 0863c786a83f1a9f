"""Many who wait for MAAS, few requests."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from provision.maas.errors import MaasRejected
from provision.maas.watch import MachineWatch


@pytest.fixture
async def watch(maas):
    made = MachineWatch(maas, window_s=0.01)
    yield made
    await made.close()


async def test_those_who_ask_together_share_a_request(watch, scripted, body):
    scripted.say(web.json_response([body(system_id="a"), body(system_id="b", hostname="r7-n02")]))
    first, second, again, gone = await asyncio.gather(*(watch.machine(name) for name in ("a", "b", "a", "c")))
    assert (first.system_id, second.hostname, again, gone) == ("a", "r7-n02", first, None)
    (seen,) = scripted.seen
    assert seen.query["id"] == ["a", "b", "c"]


async def test_who_asks_later_gets_what_is_true_later(watch, scripted, body):
    scripted.say(
        web.json_response([body(system_id="a", status=9, status_name="Deploying")]),
        web.json_response([body(system_id="a", status=6, status_name="Deployed")]),
    )
    assert (await watch.machine("a")).status_name == "Deploying"
    assert (await watch.machine("a")).status_name == "Deployed"


async def test_a_refusal_reaches_everybody_and_the_next_round_is_new(watch, scripted, body):
    scripted.say(web.Response(status=400, text="no"), web.json_response([body(system_id="a")]))
    answers = await asyncio.gather(watch.machine("a"), watch.machine("b"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [MaasRejected, MaasRejected]
    assert (await watch.machine("a")).system_id == "a"


async def test_who_stops_waiting_takes_nothing_from_the_others(watch, scripted, body):
    scripted.say(web.json_response([body(system_id="a")]))
    impatient = asyncio.create_task(watch.machine("a"))
    patient = asyncio.create_task(watch.machine("a"))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).system_id == "a"


async def test_closing_ends_the_waiting(watch, scripted):
    scripted.say(web.json_response([]))
    waiting = asyncio.create_task(watch.machine("a"))
    await asyncio.sleep(0)
    await watch.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert scripted.seen == []
