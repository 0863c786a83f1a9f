"""What the mirror says about itself: to people, to programs, to monitoring."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from provision.mirror.desk import Desk
from provision.mirror.store import Entry

_STYLE = (
    "body{font:15px system-ui;margin:2em;color:#222}table{border-collapse:collapse}"
    "td,th{text-align:left;padding:.2em 1.2em .2em 0;border-bottom:1px solid #ddd}"
    "td.n{text-align:right}code{font-size:12px}"
)


async def human(request: Request, desk: Desk) -> Response:
    """Show all files in a browser; whoever asks for JSON gets it."""
    if "application/json" in request.headers.get("accept", ""):
        return await machine(request, desk)
    entries = await asyncio.to_thread(desk.store.entries)
    rows = "".join(_row(entry) for entry in entries)
    summary = f"{len(entries)} files, {_size(desk.store.held())}; {_size(max(desk.store.free(), 0))} free"
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>File mirror</title><style>{_STYLE}</style>"
        f"<h1>File mirror</h1><p>{summary} · "
        "<a href=/index.json>JSON</a> · <a href=/SHA256SUMS>SHA256SUMS</a></p>"
        f"<table><tr><th>name<th>size<th>sha256<th>stored<th>by<th>pinned</tr>{rows}</table>"
    )


async def machine(_: Request, desk: Desk) -> Response:
    """List all files as JSON."""
    entries = await asyncio.to_thread(desk.store.entries)
    return JSONResponse({"schema": 1, "files": [asdict(entry) for entry in entries]})


async def sums(_: Request, desk: Desk) -> Response:
    """List names the way sha256sum does."""
    entries = await asyncio.to_thread(desk.store.entries)
    lines = sorted(f"{entry.sha256}  {name}\n" for entry in entries for name in entry.names)
    return PlainTextResponse("".join(lines))


async def health(_: Request, desk: Desk) -> Response:
    """Say whether files can be served and taken; 503 where the folder cannot be written."""
    writable = await asyncio.to_thread(os.access, desk.config.root / "partial", os.W_OK)
    state = "not-writable" if not writable else "full" if desk.store.free() <= 0 else "ok"
    return JSONResponse({"schema": 1, "status": state}, 200 if writable else 503)


async def metrics(_: Request, desk: Desk) -> Response:
    """Give Prometheus its numbers."""
    counters = desk.counters
    lines: list[str] = []
    for name, kind, text, value in (
        ("files", "gauge", "contents held", desk.store.count()),
        ("stored_bytes", "gauge", "size of all content", desk.store.held()),
        ("free_bytes", "gauge", "bytes free beside the reserve", desk.store.free()),
        ("uploads", "gauge", "uploads under way", desk.uploads.count()),
        ("received_bytes_total", "counter", "bytes received", counters.received),
        ("published_total", "counter", "files published", counters.published),
        ("expired_total", "counter", "uploads given up", counters.expired),
        ("collected_total", "counter", "files collected", counters.collected),
        ("broken_total", "counter", "files that had lost their digest", counters.broken),
    ):
        lines += _metric(name, kind, text, [("", value)])
    refused = [(f'{{code="{code}"}}', count) for code, count in sorted(counters.refused.items())]
    lines += _metric("refused_total", "counter", "requests refused", refused)
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _metric(name: str, kind: str, text: str, values: Sequence[tuple[str, int]]) -> list[str]:
    full = f"muster_mirror_{name}"
    return [
        f"# HELP {full} {text}",
        f"# TYPE {full} {kind}",
        *(f"{full}{labels} {value}" for labels, value in values),
    ]


def _row(entry: Entry) -> str:
    names = "<br>".join(f'<a href="/files/{quote(name)}">{escape(name)}</a>' for name in entry.names) or "-"
    stored = datetime.fromtimestamp(entry.stored_at, UTC).strftime("%Y-%m-%d %H:%MZ")
    return (
        f"<tr><td>{names}<td class=n>{_size(entry.size)}"
        f'<td><a href="/sha256/{entry.sha256}"><code>{entry.sha256}</code></a>'
        f"<td>{stored}<td>{escape(entry.by)}<td>{escape(entry.pinned)}</tr>"
    )


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
