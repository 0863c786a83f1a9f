"""A MAAS that answers what a test says, and a client whose clock the test holds."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from provision.maas.client import MaasClient
from provision.maas.transport import Ambient, Limits

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Key:
    """An API key that counts how often it was looked at."""

    value: str = "ck-red:tk-green:s&cret blue"
    looks: int = 0

    def reveal(self) -> str:
        self.looks += 1
        return self.value


@dataclass
class Seen:
    method: str
    path: str
    query: dict[str, list[str]]
    form: dict[str, list[str]]
    headers: Mapping[str, str]


@dataclass
class Scripted:
    """Answers in the order given; the last answer is repeated."""

    replies: list[web.Response | Reply] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)

    def say(self, *replies: web.Response | Reply) -> None:
        self.replies += replies

    async def handle(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        self.seen.append(
            Seen(
                request.method,
                request.path,
                {name: request.query.getall(name) for name in request.query},
                {name: [str(value) for value in form.getall(name)] for name in form},
                request.headers,
            )
        )
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, web.Response):
            # A response object can be sent once.
            return web.Response(body=reply.body, status=reply.status, headers=reply.headers.copy())
        return await reply(request)


@dataclass
class Time:
    """A clock that stands still but for sleeping."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def ambient(self) -> Ambient:
        return Ambient(
            clock=lambda: self.now, wall=lambda: 1_800_000_000.0, sleep=self.sleep, rng=lambda: 1.0
        )


@pytest.fixture
def key() -> Key:
    return Key()


@pytest.fixture
def held_time() -> Time:
    return Time()


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
async def server(scripted: Scripted) -> AsyncIterator[TestServer]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", scripted.handle)
    async with TestServer(app) as started:
        yield started


@pytest.fixture
async def maas(server: TestServer, key: Key, held_time: Time) -> AsyncIterator[MaasClient]:
    limits = Limits(call_timeout_s=2.0, deadline_s=60.0)
    async with MaasClient(
        str(server.make_url("/MAAS")),
        key,
        node_names={"abc123": "r7-n01"}.get,  # type: ignore[arg-type]
        limits=limits,
        ambient=held_time.ambient(),
    ) as client:
        yield client


def machine_body(**changes: object) -> dict[str, object]:
    """Return a machine as MAAS sends it, the parts that are read."""
    body: dict[str, object] = {
        "system_id": "abc123",
        "hostname": "r7-n01",
        "fqdn": "r7-n01.maas",
        "status": 4,
        "status_name": "Ready",
        "status_message": "Ready",
        "error_description": "",
        "power_state": "off",
        "power_type": "ipmi",
        "pool": {"id": 0, "name": "default", "description": ""},
        "zone": {"id": 1, "name": "row-b", "description": ""},
        "tag_names": ["gpu"],
        "locked": False,
        "owner": None,
        "osystem": "",
        "distro_series": "",
        "architecture": "amd64/generic",
        "netboot": True,
        "hardware_info": {"system_serial": "Unknown", "chassis_serial": "CH-0071"},
        "boot_interface": {"mac_address": "02:00:00:00:71:02"},
        "interface_set": [
            {"mac_address": "02:00:00:00:71:01", "links": [{"id": 4, "mode": "dhcp"}]},
            {
                "mac_address": "02:00:00:00:71:02",
                "links": [{"id": 5, "mode": "auto", "ip_address": "10.71.0.9"}],
            },
        ],
    }
    return body | changes


@pytest.fixture
def body() -> Callable[..., dict[str, object]]:
    return machine_body


@pytest.fixture
def unused_tcp_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
