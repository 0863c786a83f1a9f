"""The lab MAAS as one HTTP server: the API, the boot service, and faults."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from aiohttp import web
from aiohttp.typedefs import Handler

from lab.maas.api.dispatch import Dispatcher
from lab.maas.api.form import read_body
from lab.maas.api.oauth import Keys
from lab.maas.boot.metadata import MetadataService
from lab.maas.boot.service import BootService
from lab.maas.clock import Clock, SystemClock
from lab.maas.config import MaasConfig
from lab.maas.errors import UnknownMachine
from lab.maas.faults import OF_MACHINE, Fault, Faults, parse_fault
from lab.maas.life.conductor import Conductor
from lab.maas.model import snapshot
from lab.maas.model.machine import Machine
from lab.maas.model.region import new_region
from lab.maas.model.status import FAILED
from lab.maas.power import PowerDriver
from lab.maas.render import API

_KEEP_SECONDS = 2.0
_KEEP_SHARE = 20
_MOST_BYTES = 256 * 1024 * 1024
_HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


class MaasServer:
    """A running lab MAAS."""

    def __init__(self, config: MaasConfig, power: PowerDriver, clock: Clock) -> None:
        self._config = config
        slots = asyncio.Semaphore(max(1, config.power_slots * max(1, len(config.rack_controllers))))
        region = new_region(config, clock.time())
        if config.state_file is not None:
            snapshot.load(region, config.state_file)
        self._ctl = Conductor(config, region, clock, power, Faults(), slots)
        self._asked: Counter[str] = Counter()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address that API clients are given, without a slash at the end."""
        return f"{self.root}/MAAS"

    @property
    def root(self) -> str:
        """The address that machines are given: /boot/{mac} and /ipxe/{mac} lie below it."""
        return f"http://{self._config.host}:{self._port}"

    @property
    def request_log(self) -> Mapping[str, int]:
        """How often each `METHOD path` was asked for, operations included as `?op=`."""
        return MappingProxyType(self._asked)

    @property
    def machines(self) -> Mapping[str, Machine]:
        """The machines by system id, to look at."""
        return MappingProxyType(self._ctl.region.machines)

    def forget_requests(self) -> None:
        """Start the request log anew."""
        self._asked.clear()

    def set_fault(
        self, name: str, *, machine: str | None = None, on: bool = True, value: float | None = None
    ) -> None:
        """Set or lift a fault; `machine` is a host name or system id.

        `value` is seconds: the wait for slow, Retry-After for maas-503.
        Raises UnknownFault, UnknownMachine.
        """
        fault = parse_fault(name)
        if fault not in OF_MACHINE:
            self._ctl.faults.switch(fault, on=on, value=value)
            return
        found = self._machine(machine or "")
        self._ctl.faults.switch_machine(found.system_id, fault, on=on)

    def _machine(self, name: str) -> Machine:
        region = self._ctl.region
        found = region.machines.get(name) or region.by_hostname(name)
        if found is None:
            raise UnknownMachine(name)
        return found

    async def start(self) -> None:
        """Begin to listen."""
        app = web.Application(middlewares=[self._faulty], client_max_size=_MOST_BYTES)
        boot = BootService(self._ctl)
        dispatcher = Dispatcher(self._ctl, Keys(list(self._config.users)))
        app.router.add_get("/boot/{mac}", boot.boot)
        app.router.add_post("/boot/{mac}/report", boot.report)
        app.router.add_get("/ipxe/{mac}", boot.ipxe)
        app.router.add_post("/MAAS/metadata/{version}/", MetadataService(self._ctl).__call__)
        app.router.add_post("/MAAS/accounts/authenticate/", self._authenticate)
        app.router.add_route("*", API + "/{path:.*}", dispatcher.__call__)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._config.host, self._config.port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        for machine in self._ctl.region.machines.values():
            if machine.status in FAILED:
                self._ctl.watch(machine)
        if self._config.state_file is not None:
            self._ctl.start(self._keep(self._config.state_file))

    async def close(self) -> None:
        """Stop listening and stop everything that runs."""
        if self._runner is not None:
            await self._runner.cleanup()
        await self._ctl.close()
        # One that never listened, because another holds the port, must not write over the other's memory.
        if self._config.state_file is not None and self._port:
            snapshot.save(self._ctl.region, self._config.state_file)

    async def _keep(self, file: Path) -> None:
        """Write the region down whenever something was asked or happened since the last time."""
        written = (-1, -1)
        while True:
            began = time.monotonic()
            state = self._asked.total(), self._ctl.region.counters["event"]
            if state != written:
                snapshot.save(self._ctl.region, file)
                written = state
            # A big region takes long to write: it is written so seldom that nobody notices.
            await asyncio.sleep(max(_KEEP_SECONDS, _KEEP_SHARE * (time.monotonic() - began)))

    async def _authenticate(self, request: web.Request) -> web.Response:
        """Exchange a user's name and password for an API key."""
        form = (await read_body(request)).form
        user = self._ctl.region.users.get(form.one("username"))
        if user is None or user.password != form.one("password"):
            return web.Response(status=403, text="")
        consumer, token, secret = user.api_key.split(":")
        key = {"consumer_key": consumer, "token_key": token, "token_secret": secret, "name": "lab"}
        return web.json_response(key)

    @web.middleware
    async def _faulty(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count a request, and spoil its answer when a fault says so."""
        op = request.query.get("op")
        self._asked[f"{request.method} {request.path}" + (f"?op={op}" if op else "")] += 1
        faults = self._ctl.faults
        if faults.active(Fault.MAAS_DOWN):
            _hang_up(request)
        if not request.path.startswith(API):
            return await handler(request)
        if faults.active(Fault.SLOW):
            await self._ctl.clock.sleep(faults.service[Fault.SLOW])
        if faults.active(Fault.MAAS_503):
            again = str(int(faults.service[Fault.MAAS_503]))
            return web.Response(status=503, text="Service Unavailable", headers={"Retry-After": again})
        if faults.active(Fault.HTML_ERROR):
            return web.Response(status=502, text=_HTML, content_type="text/html")
        answer = await handler(request)
        if faults.active(Fault.HALF_BODY):
            return await _half(request, answer)
        return answer


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError("the lab MAAS is down")


async def _half(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """Send half of an answer that promised the whole, then hang up."""
    whole = answer.body if isinstance(answer, web.Response) and isinstance(answer.body, bytes) else b"{}"
    half = web.StreamResponse(status=answer.status, headers={"Content-Length": str(len(whole))})
    half.content_type = answer.content_type
    await half.prepare(request)
    await half.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.close()
    return half


async def start_maas(config: MaasConfig, power: PowerDriver, *, clock: Clock | None = None) -> MaasServer:
    """Start a lab MAAS; close it with `await server.close()`.

    Raises BadSnapshot for a state file that is not one, OSError for an address that cannot be had.
    """
    server = MaasServer(config, power, clock or SystemClock())
    try:
        await server.start()
    except BaseException:
        await server.close()
        raise
    return server
