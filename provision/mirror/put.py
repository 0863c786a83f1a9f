"""A whole file in one PUT, with its `X-Sha256: HEX`.

Behind nginx it comes in steps, of which the client sees one: nginx asks whether it may (`admit`), writes
the body to a file, and has us take the file (`take`). Where it may not, or where it fails at writing, it
has us say why (`explain`), because it passes on nothing of what the first step says but yes or no.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from provision.mirror import tus
from provision.mirror.connections import Connection
from provision.mirror.desk import Desk
from provision.mirror.promise import Promise
from provision.mirror.refusals import Refusal, Why


class Step(StrEnum):
    """What a PUT asks of the service."""

    WHOLE = ""
    ADMIT = "admit"
    TAKE = "take"
    EXPLAIN = "explain"


def step(request: Request, desk: Desk) -> Step:
    """Return what nginx asks; without nginx in front, nobody is believed who says such a thing."""
    return Step(request.headers.get("x-body-step", "")) if desk.config.behind_nginx else Step.WHOLE


async def put(request: Request, desk: Desk) -> Response:
    """Take a whole file in one request; what is cut off leaves nothing behind."""
    asked = step(request, desk)
    promise = tus.promised(
        desk,
        length=tus.whole(request, "content-length" if asked is Step.WHOLE else "x-body-length"),
        sha256=request.headers.get("x-sha256", ""),
        name=request.path_params["name"],
        replace=request.query_params.get("replace", "") in {"1", "true"},
        by=str(request.state.who),
    )
    request.state.sha256, request.state.length = promise.sha256, promise.length
    ticket, body = request.headers.get("x-body-ticket", ""), request.headers.get("x-body-file", "")
    if asked is Step.ADMIT:
        await desk.uploads.admit(ticket, promise, Connection.read(request.headers["x-body-from"]))
        return Response(status_code=204)
    if asked is Step.EXPLAIN:
        raise await desk.uploads.refusal(ticket, promise)
    if asked is Step.TAKE and body:
        await desk.uploads.adopt(ticket, promise, Path(body))
        desk.counters.received += promise.length
    else:  # also nginx writes no file for nothing
        desk.uploads.forget(ticket)
        await _receive(request, desk, promise)
    desk.counters.published += 1
    told = {"schema": 1, "name": promise.name, "sha256": promise.sha256, "size": promise.length}
    return JSONResponse(told, 201)


async def _receive(request: Request, desk: Desk, promise: Promise) -> None:
    upload = await desk.uploads.create(promise)
    try:
        if await tus.append(request, desk, upload, 0) != promise.length:
            raise Refusal(Why.BAD_REQUEST, "the body is shorter than its length")
    finally:
        await desk.uploads.discard(upload)
