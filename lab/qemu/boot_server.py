"""The boot server of the QEMU nodes: what a MAAS rack controller is to a site.

Nodes reach it at 10.0.2.2, QEMU's name for this machine's 127.0.0.1.

    GET  /ipxe/{mac}          asks MAAS what this boot is for, and answers with a script
    GET  /kernel /initrd /image/{mac}
    GET  /order/{mac}         MAAS's answer to the last /ipxe of this node, as shell assignments
    POST /boot/{mac}/report   passed on to MAAS as it came, and MAAS's answer back

MAAS is asked once a boot, because each of its answers makes the token of the one before worthless.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable

import aiohttp
from aiohttp import web

from lab.qemu.errors import BootServiceFailed
from lab.qemu.order import BootOrder, boot_script, read_order, shell_order
from lab.qemu.recipe import Assets

log = logging.getLogger(__name__)

_GUEST_HOST = "10.0.2.2"
_MAAS_TIMEOUT = aiohttp.ClientTimeout(total=30)
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_MAX_REPORT_BYTES = 16 << 20

_Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


class BootServer:
    """Serves all QEMU nodes of one lab; made by start_boot_server."""

    def __init__(self, assets: Assets, maas: aiohttp.ClientSession, maas_url: str) -> None:
        self._assets = assets
        self._maas = maas
        self._maas_url = maas_url.rstrip("/")
        self._addresses: dict[str, str] = {}
        self._orders: dict[str, BootOrder] = {}
        self._without_image: set[str] = set()
        self._looping: set[str] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self._port

    @property
    def guest_url(self) -> str:
        """Its address as a node sees it."""
        return f"http://{_GUEST_HOST}:{self._port}"

    def register(self, mac: str, address: str) -> None:
        """Let the node with `mac` boot; `address` is where its sshd will answer."""
        self._addresses[mac.lower()] = address

    def refuse_image(self, mac: str, refuse: bool) -> None:
        """Give this node no OS image, so that its installs fail, or give it one again."""
        (self._without_image.add if refuse else self._without_image.discard)(mac.lower())

    def loop(self, mac: str, loop: bool) -> None:
        """Send this node back to the start of its netboot, forever, or let it pass again."""
        (self._looping.add if loop else self._looping.discard)(mac.lower())

    async def start(self) -> None:
        app = web.Application(client_max_size=_MAX_REPORT_BYTES, middlewares=[_say_what_failed])
        app.add_routes(
            [
                web.get("/ipxe/{mac}", self._script),
                web.get("/kernel", self._kernel),
                web.get("/initrd", self._initrd),
                web.get("/image/{mac}", self._image),
                web.get("/order/{mac}", self._order),
                web.post("/boot/{mac}/report", self._report),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop serving; transfers under way are cut."""
        if self._runner is not None:
            await self._runner.cleanup()
        await self._maas.close()

    async def _script(self, request: web.Request) -> web.Response:
        mac = self._known(request)
        if mac in self._looping:
            return web.Response(
                text=f"#!ipxe\necho muster-lab: try again\nchain {self.guest_url}/ipxe/{mac}\n"
            )
        status, body = await self._ask(mac, "GET", f"/boot/{mac}")
        if status != 200:
            raise BootServiceFailed(
                mac, f"MAAS answered {status} to a network boot", follow="read the lab's log"
            )
        order = self._orders[mac] = read_order(mac, body)
        log.info("%s boots from the network: %s", mac, order.intent)
        return web.Response(text=boot_script(order, self.guest_url))

    async def _kernel(self, _request: web.Request) -> web.FileResponse:
        return web.FileResponse(self._assets.kernel)

    async def _initrd(self, _request: web.Request) -> web.FileResponse:
        return web.FileResponse(self._assets.initrd)

    async def _image(self, request: web.Request) -> web.StreamResponse:
        if self._known(request) in self._without_image:
            return web.Response(status=404, text="no OS image for this node\n")
        return web.FileResponse(self._assets.image)

    async def _order(self, request: web.Request) -> web.Response:
        mac = self._known(request)
        order = self._orders.get(mac)
        if order is None:
            return web.Response(status=409, text="this node has not asked for a script yet\n")
        text = shell_order(order, address=self._addresses[mac], image_bytes=self._assets.image.stat().st_size)
        return web.Response(text=text)

    async def _report(self, request: web.Request) -> web.Response:
        mac = self._known(request)
        status, body = await self._ask(mac, "POST", f"/boot/{mac}/report", await request.read())
        return web.Response(status=status, body=body)

    async def _ask(self, mac: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            async with self._maas.request(
                method, self._maas_url + path, data=body, headers=headers, timeout=_MAAS_TIMEOUT
            ) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise BootServiceFailed(
                mac, f"MAAS does not answer {method} {path}", follow="look at `lab.status`"
            ) from exc

    def _known(self, request: web.Request) -> str:
        mac = request.match_info["mac"].lower()
        if not _MAC.fullmatch(mac) or mac not in self._addresses:
            raise web.HTTPNotFound(text="no such node\n")
        return mac


async def start_boot_server(assets: Assets, maas_url: str) -> BootServer:
    """Start a boot server on 127.0.0.1, any port, that passes on to the boot service at `maas_url`."""
    server = BootServer(assets, aiohttp.ClientSession(), maas_url)
    try:
        await server.start()
    except BaseException:
        await server.close()
        raise
    return server


@web.middleware
async def _say_what_failed(request: web.Request, handler: _Respond) -> web.StreamResponse:
    """Turn MAAS's silence into the answer that a rack controller gives for it."""
    try:
        return await handler(request)
    except BootServiceFailed as exc:
        log.warning("%s: %s", exc.where, exc)
        return web.Response(status=502, text=f"{exc}\n")
