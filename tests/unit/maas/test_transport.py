"""What is repeated, what is not, and what is said when MAAS does not answer as it should."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from provision.maas.client import MaasClient
from provision.maas.errors import (
    MaasAuthRejected,
    MaasBadAnswer,
    MaasBadKey,
    MaasClockSkew,
    MaasConflict,
    MaasForbidden,
    MaasLocked,
    MaasNoRack,
    MaasNotFound,
    MaasRejected,
    MaasUnavailable,
    MaasUncertain,
    MaasUnreachable,
)
from provision.maas.transport import Ambient, Limits, api_url

Body = Callable[..., dict[str, object]]


def plain(status: int, text: str, **headers: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/plain", headers=headers)


async def test_signs_each_call_anew_without_keeping_the_key(maas, scripted, key):
    scripted.say(web.json_response([]))
    await maas.machines()
    await maas.machines()
    first, second = (seen.headers["Authorization"] for seen in scripted.seen)
    assert first.startswith("OAuth ")
    assert 'oauth_signature="%26s%2526cret%2520blue"' in first
    assert 'oauth_timestamp="1800000000"' in first
    assert first != second  # the nonce
    assert key.looks == 2
    assert "cret" not in repr(maas)


async def test_repeats_a_read_after_503_and_waits_as_long_as_asked(maas, scripted, held_time):
    scripted.say(plain(503, "busy", **{"Retry-After": "7"}), web.json_response([]))
    assert await maas.machines() == ()
    assert held_time.slept == [7.0]


async def test_a_wait_of_no_seconds_still_backs_off(maas, scripted, held_time):
    scripted.say(plain(503, "busy", **{"Retry-After": "0"}), plain(503, "busy"), web.json_response([]))
    assert await maas.machines() == ()
    assert held_time.slept == [0.5, 1.0]


async def test_backs_off_evenly_through_a_very_long_outage(server, key, scripted, held_time):
    scripted.say(*[plain(503, "busy")] * 1100, web.json_response([]))
    limits = Limits(deadline_s=1e6, backoff_most_s=2.0)
    async with MaasClient(
        str(server.make_url("/MAAS")), key, limits=limits, ambient=held_time.ambient()
    ) as client:
        assert await client.machines() == ()
    assert held_time.slept[:4] == [0.5, 1.0, 2.0, 2.0]
    assert held_time.slept[-1] == 2.0


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_repeats_a_read_with_growing_pauses(maas, scripted, held_time, status):
    scripted.say(plain(status, "no"), plain(status, "no"), web.json_response([]))
    assert await maas.machines() == ()
    assert held_time.slept == [0.5, 1.0]


async def test_repeats_an_acting_call_only_when_maas_asks_for_it(maas, scripted, held_time, body):
    scripted.say(plain(503, "busy", **{"Retry-After": "3"}), web.json_response(body()))
    await maas.commission("abc123")
    assert held_time.slept == [3.0]
    assert [seen.method for seen in scripted.seen] == ["POST", "POST"]


async def test_does_not_repeat_an_acting_call_that_failed_inside_maas(maas, scripted, held_time):
    scripted.say(plain(500, "'NoneType' object is not iterable"))
    with pytest.raises(MaasRejected, match=r"commission of r7-n01 \(500\).*NoneType"):
        await maas.commission("abc123")
    assert len(scripted.seen) == 1


async def test_gives_up_at_the_deadline_with_what_maas_said(maas, scripted, held_time):
    scripted.say(plain(503, "the region is starting", **{"Retry-After": "25"}))
    with pytest.raises(MaasUnavailable, match="the region is starting") as caught:
        await maas.machines()
    assert caught.value.retry_after == 25.0
    assert sum(held_time.slept) <= 60.0


async def test_a_missing_rack_controller_is_said_at_once(maas, scripted, held_time):
    scripted.say(plain(503, "No rack controllers can access the BMC of node r7-n01"))
    with pytest.raises(MaasNoRack):
        await maas.query_power_state("abc123")
    scripted.replies = [plain(500, "Error determining BMC task queue for machine abc123")]
    with pytest.raises(MaasNoRack):
        await maas.power_on("abc123")
    assert held_time.slept == []


async def test_tells_a_clock_that_is_behind_from_a_wrong_key(maas, scripted):
    scripted.say(
        web.Response(
            status=401,
            content_type="text/html",
            text="Authorization Error: 'Expired timestamp: given 1000 and now 1900 has a greater difference'",
        )
    )
    with pytest.raises(MaasClockSkew, match="900 s behind"):
        await maas.machines()
    scripted.replies = [
        web.Response(status=401, content_type="text/html", text="Authorization Error: Invalid API key.")
    ]
    with pytest.raises(MaasAuthRejected, match="Invalid API key"):
        await maas.machines()


async def test_never_shows_the_secret_that_maas_itself_prints(maas, scripted, caplog):
    caplog.set_level(logging.DEBUG)
    said = "Authorization Error: 'Invalid signature. Expected signature base string: &s3cretOfTheKey'"
    scripted.say(web.Response(status=401, content_type="text/html", text=said))
    with pytest.raises(MaasAuthRejected) as caught:
        await maas.machines()
    assert "s3cret" not in f"{caught.value!r} {caught.value} {caught.value.reason} {caplog.text}"


async def test_repeats_a_read_whose_nonce_was_seen_and_is_unsure_of_an_act(maas, scripted, body):
    used = web.Response(
        status=401, content_type="text/html", text="Authorization Error: 'Nonce already used: 5f'"
    )
    scripted.say(used, web.json_response([]))
    assert await maas.machines() == ()
    scripted.replies = [used]
    with pytest.raises(MaasUncertain):
        await maas.commission("abc123")


async def test_an_empty_403_is_called_a_lock_only_where_the_machine_is_locked(maas, scripted, body):
    scripted.say(plain(403, ""), web.json_response(body(locked=True)))
    with pytest.raises(MaasLocked, match=r"release of r7-n01.*locked in MAAS"):
        await maas.release("abc123")
    scripted.replies = [plain(403, ""), web.json_response(body())]
    with pytest.raises(MaasForbidden) as caught:
        await maas.release("abc123")
    assert not isinstance(caught.value, MaasLocked)


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (plain(404, "No Machine matches the given query."), MaasNotFound, "No Machine matches"),
        (plain(409, "Can't deploy a machine that is in the 'New' state"), MaasConflict, "'New' state"),
        (
            web.json_response(
                {"__all__": ["Commission is not available because of the current state of the node."]},
                status=400,
            ),
            MaasConflict,
            "current state",
        ),
        (
            web.json_response(
                {"architecture": ["This field is required."], "zone": ["No such zone."]}, status=400
            ),
            MaasRejected,
            "architecture: This field is required.; zone: No such zone.",
        ),
        (
            web.Response(status=405, content_type="text/html", text="<h1>Not  <i>allowed</i></h1>"),
            MaasRejected,
            "Not allowed",
        ),
    ],
)
async def test_keeps_the_reason_that_maas_gave(maas, scripted, answer, kind, reason):
    scripted.say(answer)
    with pytest.raises(kind) as caught:
        await maas.commission("abc123")
    assert reason in caught.value.reason
    assert (caught.value.call, caught.value.machine) == ("commission", "r7-n01")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (
            web.Response(text="<html><body>Please log in</body></html>", content_type="text/html"),
            "Please log in",
        ),
        (web.Response(text='[{"system_id": "a', content_type="application/json"), "no JSON"),
        (web.json_response({"system_id": "a"}), "list was expected"),
        (web.json_response([{"hostname": "a"}]), "'status' is missing"),
        (web.Response(status=302, headers={"Location": "http://192.0.2.1/"}), "redirect"),
    ],
)
async def test_an_answer_that_is_not_maas_is_a_bad_answer(maas, scripted, answer, what):
    scripted.say(answer)
    with pytest.raises(MaasBadAnswer, match=what):
        await maas.machines()


async def _cut_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "500", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'[{"system_id": ')
    assert request.transport is not None
    request.transport.close()
    return response


async def test_half_a_body_is_read_again_but_never_acted_on_again(maas, scripted, held_time):
    scripted.say(_cut_off, web.json_response([]))
    assert await maas.machines() == ()
    scripted.replies = [_cut_off]
    with pytest.raises(MaasUncertain, match="may or may not have carried out commission of r7-n01") as caught:
        await maas.commission("abc123")
    assert isinstance(caught.value, MaasUnreachable)  # whoever waits for MAAS waits here too
    assert len(scripted.seen) == 3


async def test_a_call_that_is_never_answered_ends(server, key, scripted, held_time):
    async def silent(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    scripted.say(silent)
    limits = Limits(call_timeout_s=0.1, deadline_s=1.0)
    url = str(server.make_url("/MAAS"))
    async with MaasClient(url, key, limits=limits, ambient=held_time.ambient()) as maas:
        with pytest.raises(MaasUnreachable, match="did not answer within") as caught:
            await maas.machines()
        assert not isinstance(caught.value, MaasUncertain)
        with pytest.raises(MaasUncertain):
            await maas.power_off("abc123")


async def test_a_refused_connection_is_tried_again_even_for_an_act(key, unused_tcp_port, held_time):
    url = f"http://127.0.0.1:{unused_tcp_port}/MAAS"
    async with MaasClient(url, key, limits=Limits(deadline_s=3.0), ambient=held_time.ambient()) as maas:
        with pytest.raises(MaasUnreachable) as caught:
            await maas.commission("abc123")
    assert not isinstance(caught.value, MaasUncertain)
    assert held_time.slept == [0.5, 1.0]


@asynccontextmanager
async def _drops_connections() -> AsyncIterator[tuple[int, list[bytes]]]:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


async def test_a_dropped_connection_leaves_an_act_uncertain(key, held_time):
    async with _drops_connections() as (port, heard):
        url = f"http://127.0.0.1:{port}/MAAS"
        async with MaasClient(url, key, limits=Limits(deadline_s=3.0), ambient=held_time.ambient()) as maas:
            with pytest.raises(MaasUncertain):
                await maas.power_off("abc123")
    assert len(heard) == 1


async def test_waiting_for_a_turn_does_not_count_as_maas_being_silent(server, key, scripted):
    async def slow(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.1)
        return web.json_response([])

    scripted.say(slow)
    url = str(server.make_url("/MAAS"))
    limits = Limits(call_timeout_s=0.25, deadline_s=0.3, connections=1)
    async with MaasClient(url, key, limits=limits, ambient=Ambient()) as maas:
        assert await asyncio.gather(*(maas.machines() for _ in range(6))) == [()] * 6


@pytest.mark.parametrize("value", ["", "abc", "a:b", "a:b:", "a:b:c:d"])
async def test_a_malformed_key_is_not_quoted(server, key, value):
    key.value = value
    async with MaasClient(str(server.make_url("/MAAS")), key) as maas:
        with pytest.raises(MaasBadKey) as caught:
            await maas.machines()
    assert str(caught.value) == "the MAAS API key is not of the form consumer:token:secret"


@pytest.mark.parametrize(
    "written",
    [
        "http://m:5240/MAAS",
        "http://m:5240/MAAS/",
        "http://m:5240/MAAS/api/2.0",
        "http://m:5240/MAAS/api/2.0/",
    ],
)
def test_takes_the_url_as_operators_write_it(written):
    assert api_url(written) == "http://m:5240/MAAS/api/2.0/"
