"""The nodes' way to packages: an HTTP proxy to the machine's own sources, and to nothing else.

What never changes under its name (package files, indexes by hash) is kept in the cache and fetched
once, however many nodes ask at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from yarl import URL

from lab.errors import NoService
from lab.nodes.sources import Archive

log = logging.getLogger(__name__)

_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=15.0, sock_read=60.0)
_CHUNK = 256 * 1024
_PASSED_ON = ("If-Modified-Since", "Range", "If-Range", "Cache-Control", "User-Agent")
_PASSED_BACK = ("Content-Length", "Content-Type", "Content-Range", "Last-Modified", "ETag", "Location")
_UPSTREAM = (aiohttp.ClientError, TimeoutError)


class PackageProxy:
    """A forward proxy. Requests for other places than the archive's are refused with 403."""

    def __init__(self, archive: Archive, cache: Path, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._upstream = archive.proxy
        self._cache = cache
        self._schemes = {
            (URL(source.uri).host or "", URL(source.uri).port or 80): URL(source.uri).scheme
            for source in archive.sources
        }
        self._fetching: dict[Path, asyncio.Lock] = {}
        self._runner: web.ServerRunner | None = None
        self.refused = 0

    async def start(self, host: str, port: int) -> None:
        """Begin to listen. Raises NoService where the address cannot be had."""
        self._cache.mkdir(parents=True, exist_ok=True)
        for leftover in self._cache.glob("*.part"):
            leftover.unlink()
        runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as exc:
            await runner.cleanup()
            raise NoService(
                "package proxy", f"cannot listen on {host}:{port}", follow=f"ss -ltnp 'sport = :{port}'"
            ) from exc
        self._runner = runner

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return int(self._runner.addresses[0][1]) if self._runner is not None else 0

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        url = self._wanted(request)
        if url is None:
            self.refused += 1
            return web.Response(status=403, text="the lab lets nodes reach its package sources only\n")
        try:
            if "Range" not in request.headers and _never_changes(url):
                return web.FileResponse(await self._fetched(url))
            return await self._pass_on(request, url)
        except _UpstreamError as exc:
            return web.Response(status=exc.status, text=f"{exc}\n")
        except _UPSTREAM as exc:
            log.warning("package source %s: %s", url.host, exc or type(exc).__name__)
            return web.Response(status=504, text="the package source does not answer\n")

    def _wanted(self, request: web.BaseRequest) -> URL | None:
        """Return the URL to fetch; nodes ask over http, the source may want https."""
        asked = request.url if request.method in ("GET", "HEAD") else URL()
        if asked.scheme != "http" or not asked.host:
            return None
        scheme = self._schemes.get((asked.host, asked.port or 80))
        if scheme is not None:
            return asked
        secure = self._schemes.get((asked.host, 443)) if asked.explicit_port is None else None
        return asked.with_scheme(secure) if secure else None

    async def _pass_on(self, request: web.BaseRequest, url: URL) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        async with self._ask(url, request.method, headers) as answer:
            response = web.StreamResponse(status=answer.status)
            for name in _PASSED_BACK:
                if name in answer.headers:
                    response.headers[name] = answer.headers[name]
            await response.prepare(request)
            async for chunk in answer.content.iter_chunked(_CHUNK):
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _fetched(self, url: URL) -> Path:
        """Return the cached file, fetching it first; those who come meanwhile wait for it."""
        place = self._cache / hashlib.sha256(str(url).encode()).hexdigest()
        lock = self._fetching.setdefault(place, asyncio.Lock())
        try:
            async with lock:
                if not place.exists():
                    await self._fetch(url, place)
        finally:
            self._fetching.pop(place, None)
        return place

    async def _fetch(self, url: URL, place: Path) -> None:
        part = place.with_suffix(".part")
        async with self._ask(url, "GET", {}) as answer:
            if answer.status != 200:
                raise _UpstreamError(answer.status, f"{url.host} answered {answer.status}")
            with part.open("wb") as file:
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    file.write(chunk)
        part.rename(place)

    @asynccontextmanager
    async def _ask(
        self, url: URL, method: str, headers: dict[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._session.request(
            method, url, headers=headers, proxy=self._upstream, timeout=_TIMEOUT, auto_decompress=False
        ) as answer:
            yield answer


class _UpstreamError(Exception):
    """The source answered with something else than the file."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def _never_changes(url: URL) -> bool:
    return url.path.endswith(".deb") or "/by-hash/" in url.path
