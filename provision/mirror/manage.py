"""Names, pins, collection and verification."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from provision.mirror import layout
from provision.mirror.desk import Desk
from provision.mirror.refusals import Refusal, Why


async def look_up(request: Request, desk: Desk) -> Response:
    """Say which content a name leads to."""
    name = layout.name(request.path_params["name"])
    sha256 = desk.store.resolve(name)
    if sha256 is None:
        raise Refusal(Why.UNKNOWN, f"there is no {name}")
    size = desk.store.content(sha256).stat().st_size
    return JSONResponse({"schema": 1, "name": name, "sha256": sha256, "size": size})


async def point(request: Request, desk: Desk) -> Response:
    """Let a name lead to content that is here."""
    name = layout.name(request.path_params["name"])
    body = await _body(request)
    sha256 = layout.digest(str(body.get("sha256", "")))
    async with desk.uploads.publishing:
        await asyncio.to_thread(desk.store.point, name, sha256, replace=body.get("replace") is True)
    return Response(status_code=204)


async def unpoint(request: Request, desk: Desk) -> Response:
    """Forget a name."""
    name = layout.name(request.path_params["name"])
    async with desk.uploads.publishing:
        await asyncio.to_thread(desk.store.unpoint, name)
    return Response(status_code=204)


async def pin(request: Request, desk: Desk) -> Response:
    """Keep content from collection."""
    sha256 = layout.digest(request.path_params["sha256"])
    why = str((await _body(request)).get("why", "")).strip()
    if not why:
        raise Refusal(Why.BAD_REQUEST, "a pin needs a why")
    async with desk.uploads.publishing:
        await asyncio.to_thread(desk.store.pin, sha256, str(request.state.who), why)
    return Response(status_code=204)


async def unpin(request: Request, desk: Desk) -> Response:
    """Let content be collected again."""
    sha256 = layout.digest(request.path_params["sha256"])
    async with desk.uploads.publishing:
        await asyncio.to_thread(desk.store.unpin, sha256)
    return Response(status_code=204)


async def collect(request: Request, desk: Desk) -> Response:
    """Remove content that is old and that nobody names, pins or is being given."""
    body = await _body(request)
    days = body.get("days", desk.config.keep_days)
    if isinstance(days, bool) or not isinstance(days, int | float) or days < 0:
        raise Refusal(Why.BAD_REQUEST, "days must be a number of at least 0")
    dry_run = body.get("dry_run") is not False
    async with desk.uploads.publishing:
        gone = await asyncio.to_thread(desk.store.collect, float(days), dry_run=dry_run, keep=desk.needed())
    if not dry_run:
        desk.counters.collected += len(gone)
    return JSONResponse({"schema": 1, "dry_run": dry_run, "files": [asdict(entry) for entry in gone]})


async def verify(request: Request, desk: Desk) -> Response:
    """Read everything again; one line of JSON a file, as it is read."""
    only = request.query_params.get("sha256")
    digests = [layout.digest(only)] if only else list(desk.store.digests())

    async def lines() -> AsyncIterator[str]:
        for sha256 in digests:
            if not desk.store.has(sha256):
                continue
            # No lock: reading takes minutes. Content never changes; it can only be collected meanwhile.
            good = await asyncio.to_thread(desk.store.intact, sha256)
            desk.counters.broken += not good
            yield json.dumps({"sha256": sha256, "intact": good}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")


async def _body(request: Request) -> Mapping[str, object]:
    try:
        read = json.loads(await request.body() or b"{}")
    except ValueError as error:
        raise Refusal(Why.BAD_REQUEST, "the body is no JSON") from error
    if not isinstance(read, dict):
        raise Refusal(Why.BAD_REQUEST, "the body is no JSON object")
    return read
