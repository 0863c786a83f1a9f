"""What the mirror's service adds for peers: descriptions of files, and a tracker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from provision.mirror import layout, service
from provision.mirror.desk import Desk
from provision.mirror.refusals import Refusal, Why
from provision.spread.torrent import Torrent, describe
from provision.spread.tracker import Tracker

Endpoint = Callable[[Request], Awaitable[Response]]


class Spreads:
    """The files that are being spread. After a restart a spread is begun again by whoever wants it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._tracker = Tracker()
        self._torrents: dict[str, Torrent] = {}
        self._describing = asyncio.Lock()
        desk.needed = self._needed

    async def begin(self, request: Request) -> Response:
        """Describe a file and introduce its peers from now on. `url` is the mirror as nodes see it."""
        who = service.named(request, self._desk)
        sha256 = layout.digest(request.path_params["sha256"])
        if not self._desk.store.has(sha256):
            raise Refusal(Why.UNKNOWN, f"there is no content {sha256}")
        try:
            url = str(json.loads(await request.body())["url"]).rstrip("/")
        except (ValueError, KeyError, TypeError) as error:
            raise Refusal(Why.BAD_REQUEST, "the body names no url") from error
        async with self._describing:
            content = self._desk.store.content(sha256)
            torrent = await asyncio.to_thread(describe, content, f"{url}/announce")
        self._torrents[sha256] = torrent
        self._tracker.allow(torrent.info_hash)
        return JSONResponse({"schema": 1, "sha256": sha256, "by": who})

    async def described(self, request: Request) -> Response:
        """Return a file's description."""
        torrent = self._torrents.get(layout.digest(request.path_params["sha256"]))
        if torrent is None:
            raise Refusal(Why.UNKNOWN, "this file is not being spread")
        return Response(torrent.data, media_type="application/x-bittorrent")

    async def announce(self, request: Request) -> Response:
        """Introduce a peer to the others."""
        address = request.client.host if request.client else ""
        if self._desk.config.behind_nginx:
            address = request.headers.get("x-real-ip", "")
        return Response(self._tracker.announce(request.url.query, address), media_type="text/plain")

    def _needed(self) -> frozenset[str]:
        return frozenset(
            sha256 for sha256, torrent in self._torrents.items() if self._tracker.peers(torrent.info_hash)
        )


def routes(desk: Desk) -> list[Route]:
    """Return what is added to the mirror's service."""
    spreads = Spreads(desk)

    def served(
        endpoint: Callable[[Request], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Refusal as refusal:
                return service.refused(refusal, desk)

        return answer

    return [
        Route("/api/torrents/{sha256}", served(spreads.begin), methods=["POST"]),
        Route("/torrents/{sha256}", served(spreads.described), methods=["GET"]),
        Route("/announce", served(spreads.announce), methods=["GET"]),
    ]
