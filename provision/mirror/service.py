"""The HTTP service: what a mirror accepts, what it says about itself. Downloads are nginx's."""

from __future__ import annotations

import asyncio
import errno
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from provision.mirror import identity, manage, pages, put, tus
from provision.mirror.access_log import AccessLog
from provision.mirror.config import Config
from provision.mirror.counters import Counters
from provision.mirror.desk import Desk
from provision.mirror.refusals import Refusal, Why
from provision.mirror.store import Store
from provision.mirror.uploads import Uploads

Endpoint = Callable[[Request, Desk], Awaitable[Response]]
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Made:
    """One way in: `who` says whether it needs a name."""

    path: str
    methods: tuple[str, ...]
    endpoint: Endpoint
    named: bool


_ROUTES = (
    _Made("/", ("GET",), pages.human, named=False),
    _Made("/index.json", ("GET",), pages.machine, named=False),
    _Made("/SHA256SUMS", ("GET",), pages.sums, named=False),
    _Made("/healthz", ("GET",), pages.health, named=False),
    _Made("/metrics", ("GET",), pages.metrics, named=False),
    _Made("/uploads", ("OPTIONS",), tus.options, named=False),
    _Made("/uploads", ("GET",), tus.mine, named=True),
    _Made("/uploads", ("POST",), tus.create, named=True),
    _Made("/uploads/{upload}", ("OPTIONS",), tus.options, named=False),
    _Made("/uploads/{upload}", ("HEAD",), tus.head, named=True),
    _Made("/uploads/{upload}", ("PATCH",), tus.patch, named=True),
    _Made("/uploads/{upload}", ("DELETE",), tus.delete, named=True),
    _Made("/api/files/{name:path}", ("PUT",), put.put, named=True),
    _Made("/api/names/{name:path}", ("GET",), manage.look_up, named=False),
    _Made("/api/names/{name:path}", ("PUT",), manage.point, named=True),
    _Made("/api/names/{name:path}", ("DELETE",), manage.unpoint, named=True),
    _Made("/api/pins/{sha256}", ("PUT",), manage.pin, named=True),
    _Made("/api/pins/{sha256}", ("DELETE",), manage.unpin, named=True),
    _Made("/api/gc", ("POST",), manage.collect, named=True),
    _Made("/api/verify", ("POST",), manage.verify, named=True),
)


def make(config: Config, extra: Callable[[Desk], list[Route]] = lambda _: []) -> Starlette:
    """Return the application. It takes hold of the folder at once; `extra` adds routes for peers."""
    store = Store(config.root, config.limits)
    desk = Desk(config, store, Uploads(store), Counters(), AccessLog(config.access_log))
    routes = [
        Route(made.path, _served(made, desk), methods=list(made.methods), name=f"{made.methods} {made.path}")
        for made in _ROUTES
    ]

    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(_sweep(desk))
        try:
            yield
        finally:
            sweeping.cancel()
            desk.uploads.close()
            store.close()

    app = Starlette(routes=[*routes, *extra(desk)], lifespan=living)
    app.state.desk = desk
    return app


def named(request: Request, desk: Desk) -> str:
    """Return who asks. Raises Refusal for nobody."""
    headers = {key.lower(): value for key, value in request.headers.items()}
    who = identity.identify(headers, desk.config.tokens, behind_nginx=desk.config.behind_nginx)
    if who == identity.NOBODY:
        raise Refusal(Why.NOT_ALLOWED, "a known token or client certificate is needed")
    return who


def _served(made: _Made, desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        begun = time.monotonic()
        who = ""
        first = made.endpoint is put.put and put.step(request, desk) is put.Step.ADMIT
        try:
            if made.named:
                who = request.state.who = named(request, desk)
            response = await made.endpoint(request, desk)
        except Refusal as refusal:
            response = Response(status_code=403) if first else refused(refusal, desk)
        except ClientDisconnect:
            # Nobody is left to read this; it is for the log.
            response = Response(status_code=499)
        except OSError as error:
            if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
                raise
            response = refused(Refusal(Why.NO_ROOM, "the disk is full"), desk)
        except HTTPException as error:
            response = JSONResponse({"code": "bad-request", "detail": error.detail}, error.status_code)
        if first:
            # nginx passes on no more than this, and asks again for the reason.
            return response if response.status_code == 204 else Response(status_code=403)
        if request.method not in {"GET", "OPTIONS"}:
            desk.log.write(request, response, who, time.monotonic() - begun)
        return response

    return endpoint


def refused(refusal: Refusal, desk: Desk) -> Response:
    """Answer with a refusal, and count it."""
    desk.counters.refused[refusal.why.code] += 1
    headers = {"Tus-Resumable": tus.VERSION}
    if refusal.why is Why.NOT_ALLOWED:
        headers["WWW-Authenticate"] = "Bearer"
    body = json.dumps({"code": refusal.why.code, "detail": refusal.detail}) + "\n"
    return Response(body, refusal.why.status, headers, "application/json")


async def _sweep(desk: Desk) -> None:
    """Forget uploads that nobody goes on with."""
    while True:
        desk.counters.expired += await desk.uploads.expire(desk.config.partial_days)
        desk.uploads.forget_gone()
        await asyncio.sleep(_HOUR_S)
