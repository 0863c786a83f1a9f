"""`/MAAS/metadata/…`: the one call of MAAS's metadata service that switches network boot off."""

from __future__ import annotations

import re

from aiohttp import web

from lab.maas.api.form import read_body
from lab.maas.life import deploy
from lab.maas.life.conductor import Conductor

_TOKEN = re.compile(r'oauth_token="([^"]+)"')


class MetadataService:
    """Takes what an installer says that speaks MAAS's own protocol instead of ours."""

    def __init__(self, ctl: Conductor) -> None:
        self._ctl = ctl

    async def __call__(self, request: web.Request) -> web.Response:
        """Answer a machine that signs with its boot token."""
        found = _TOKEN.search(request.headers.get("Authorization", ""))
        token = found[1] if found else ""
        machines = self._ctl.region.machines.values()
        machine = next((one for one in machines if token and one.boot.token == token), None)
        if machine is None:
            return web.Response(status=401, text="Unknown node")
        op = (await read_body(request)).form.one("op")
        if op != "netboot_off":
            return web.Response(status=400, text=f"Unrecognised signature: method=POST op={op}")
        self._ctl.touch(machine)
        deploy.stop_netboot(self._ctl, machine)
        return web.Response(body=b"OK", headers={"Content-Type": "text/plain"})
