"""Uploads by the tus protocol 1.0.0 (core, creation, expiration, termination).

The sha256 of the whole file is part of the promise: `Upload-Metadata: sha256 BASE64(HEX)`, beside
`filename` and, to move a name that leads elsewhere, `replace`.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from email.utils import formatdate

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from provision.mirror import layout
from provision.mirror.desk import Desk
from provision.mirror.promise import Promise
from provision.mirror.refusals import Refusal, Why

VERSION = "1.0.0"
_EXTENSIONS = "creation,expiration,termination"
_BODY = "application/offset+octet-stream"
_DAY_S = 86400.0


async def options(_: Request, desk: Desk) -> Response:
    """Say what we speak."""
    headers = {"Tus-Resumable": VERSION, "Tus-Version": VERSION, "Tus-Extension": _EXTENSIONS}
    if desk.config.max_file:
        headers["Tus-Max-Size"] = str(desk.config.max_file)
    return Response(status_code=204, headers=headers)


async def mine(request: Request, desk: Desk) -> Response:
    """List the caller's uploads of one content that nobody writes to, the furthest first."""
    sha256 = layout.digest(request.query_params.get("sha256", ""))
    who = str(request.state.who)
    found = [
        {"url": f"/uploads/{upload}", "offset": desk.uploads.offset(upload)}
        for upload in desk.uploads.idle(sha256, who)
    ]
    return JSONResponse({"schema": 1, "uploads": found})


async def create(request: Request, desk: Desk) -> Response:
    """Begin an upload, if it fits."""
    _same_version(request)
    metadata = _metadata(request.headers.get("upload-metadata", ""))
    promise = promised(
        desk,
        length=whole(request, "upload-length"),
        sha256=metadata.get("sha256", ""),
        name=metadata.get("filename", ""),
        replace=metadata.get("replace", "") in {"1", "true"},
        by=str(request.state.who),
    )
    request.state.sha256 = promise.sha256
    upload = await desk.uploads.create(promise)
    if promise.length == 0:
        await desk.uploads.append(upload, 0, _nothing())
    # Some clients take no path for an address.
    scheme = request.headers.get("x-forwarded-proto", request.url.scheme)
    location = f"{scheme}://{request.headers.get('host', '')}/uploads/{upload}"
    headers = {"Location": location, "Tus-Resumable": VERSION, **_expiry(desk)}
    return Response(status_code=201, headers=headers)


async def head(request: Request, desk: Desk) -> Response:
    """Say how far an upload has come."""
    upload = request.path_params["upload"]
    promise = desk.uploads.promise(upload, str(request.state.who))
    headers = {
        "Cache-Control": "no-store",
        "Tus-Resumable": VERSION,
        "Upload-Offset": str(desk.uploads.offset(upload)),
        "Upload-Length": str(promise.length),
    }
    return Response(status_code=200, headers=headers)


async def patch(request: Request, desk: Desk) -> Response:
    """Take more of an upload; the last part publishes it."""
    _same_version(request)
    if request.headers.get("content-type") != _BODY:
        raise Refusal(Why.BAD_REQUEST, f"a part has the content type {_BODY}")
    upload = request.path_params["upload"]
    promise = desk.uploads.promise(upload, str(request.state.who))
    request.state.sha256 = promise.sha256
    offset = await append(request, desk, upload, whole(request, "upload-offset"))
    if offset == promise.length:
        desk.counters.published += 1
    headers = {"Tus-Resumable": VERSION, "Upload-Offset": str(offset), **_expiry(desk)}
    return Response(status_code=204, headers=headers)


async def delete(request: Request, desk: Desk) -> Response:
    """Give an upload up."""
    upload = request.path_params["upload"]
    desk.uploads.promise(upload, str(request.state.who))
    await desk.uploads.give_up(upload)
    return Response(status_code=204, headers={"Tus-Resumable": VERSION})


async def append(request: Request, desk: Desk, upload: str, offset: int) -> int:
    """Take what the request brings, and return how far the upload has come. Raises Refusal."""
    before = desk.uploads.offset(upload)
    async with aclosing(request.stream()) as chunks:
        after = await desk.uploads.append(upload, offset, chunks)
    desk.counters.received += after - before
    return after


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


def promised(desk: Desk, *, length: int, sha256: str, name: str, replace: bool, by: str) -> Promise:
    """Return what is to become of an upload. Raises Refusal."""
    if desk.config.max_file and length > desk.config.max_file:
        raise Refusal(Why.TOO_LARGE, f"a file has at most {desk.config.max_file} bytes here")
    if name:
        layout.name(name)
    return Promise(length, layout.digest(sha256), name, replace, by, time.time())


def _metadata(header: str) -> dict[str, str]:
    """Read `key BASE64,key BASE64`. Raises Refusal."""
    found = {}
    for pair in filter(None, (part.strip() for part in header.split(","))):
        key, _, value = pair.partition(" ")
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Refusal(Why.BAD_REQUEST, f"Upload-Metadata: {key} is no base64 of text") from error
    return found


def whole(request: Request, name: str) -> int:
    """Return the number that a header says. Raises Refusal."""
    text = request.headers.get(name, "")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refusal(Why.BAD_REQUEST, f"{name} must be a number of bytes")
    return int(text)


def _same_version(request: Request) -> None:
    if request.headers.get("tus-resumable") != VERSION:
        raise Refusal(Why.BAD_VERSION, f"Tus-Resumable must be {VERSION}")


def _expiry(desk: Desk) -> dict[str, str]:
    return {"Upload-Expires": formatdate(time.time() + desk.config.partial_days * _DAY_S, usegmt=True)}
