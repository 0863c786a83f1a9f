"""The mirror as commands see it: put, get, list, name, pin, collect, verify."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import aiohttp
import aiotus

from inventory.secrets import Secret
from provision.mirror import transfer
from provision.mirror.errors import MirrorBadAnswer, MirrorUnreachable, UnknownFile
from provision.mirror.transfer import Progress, silent
from provision.mirror.wire import BROKEN, raise_refusal

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TIMES = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=600)
Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class File:
    """One content of the mirror. `stored_at` is in seconds since 1970; `pinned` who and why, or empty."""

    sha256: str
    size: int
    names: tuple[str, ...] = ()
    stored_at: float = 0.0
    by: str = ""
    pinned: str = ""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What opens the mirror for writing: a token, or a certificate in `tls`, or nothing for reading."""

    token: Secret | None = None
    tls: ssl.SSLContext | None = None


class Mirror:
    """One mirror; enter it with `async with`. Every method raises the errors of its package."""

    def __init__(self, url: str, credentials: Credentials | None = None) -> None:
        self.url = url.rstrip("/")
        self._credentials = credentials or Credentials()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        token = self._credentials.token
        tls = self._credentials.tls
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {token.reveal()}"} if token else {},
            connector=aiohttp.TCPConnector(ssl=tls if tls is not None else True),
            timeout=_TIMES,
            raise_for_status=raise_refusal,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.close()

    async def files(self) -> Sequence[File]:
        """Return everything that the mirror holds."""
        return _files(await self._json("GET", "/index.json"))

    async def look_up(self, name: str) -> File:
        """Return what a name, or a digest, leads to. Raises UnknownFile."""
        if _DIGEST.fullmatch(name):
            return await self._content(name)
        answer = await self._json("GET", f"/api/names/{quote(name)}")
        return _file({**answer, "names": [answer.get("name")]})

    async def put(self, path: Path, name: str, *, replace: bool = False, progress: Progress = silent) -> File:
        """Send a file, going on with what an earlier attempt left there; return it as published.

        Content that is there already is only named. Raises OSError where `path` cannot be read.
        """
        sha256 = await asyncio.to_thread(transfer.digest, path)
        file = File(sha256, path.stat().st_size, (name,) if name else ())
        try:
            await self._content(sha256)
        except UnknownFile:
            await self._send(path, file, replace, progress)
        else:
            if name:
                await self.point(name, sha256, replace=replace)
        progress(file.size, file.size)
        return file

    async def get(self, name: str, out: Path, *, progress: Progress = silent) -> File:
        """Fetch a file to `out`, going on with what an earlier attempt left beside it.

        `out` appears whole and verified, or not at all. Raises OSError where it cannot be written.
        """
        file = await self.look_up(name)
        part = out.with_name(f".{out.name}.{file.sha256[:16]}.part")
        await transfer.fetch(self._open, f"{self.url}/sha256/{file.sha256}", part, file.sha256, progress)
        part.rename(out)
        return file

    async def point(self, name: str, sha256: str, *, replace: bool = False) -> None:
        """Let a name lead to content that is there."""
        await self._json("PUT", f"/api/names/{quote(name)}", {"sha256": sha256, "replace": replace})

    async def remove_name(self, name: str) -> None:
        """Forget a name."""
        await self._json("DELETE", f"/api/names/{quote(name)}")

    async def pin(self, sha256: str, why: str) -> None:
        """Keep content from collection."""
        await self._json("PUT", f"/api/pins/{sha256}", {"why": why})

    async def unpin(self, sha256: str) -> None:
        """Let content be collected again."""
        await self._json("DELETE", f"/api/pins/{sha256}")

    async def collect(self, days: float | None, *, dry_run: bool) -> Sequence[File]:
        """Remove what nobody names or pins and is older than `days` (None: the mirror's own limit)."""
        body: dict[str, object] = {"dry_run": dry_run}
        if days is not None:
            body["days"] = days
        return _files(await self._json("POST", "/api/gc", body))

    async def verify(self) -> AsyncGenerator[tuple[str, bool], None]:
        """Have the mirror read everything again; yield each digest and whether it still has it."""
        try:
            async with self._open.post(f"{self.url}/api/verify") as answer:
                async for line in answer.content:
                    read = json.loads(line)
                    yield str(read["sha256"]), read["intact"] is True
        except BROKEN as error:
            raise self._unreachable(error) from error
        except (ValueError, KeyError) as error:
            raise MirrorBadAnswer("its answer to verify is no list of digests") from error

    async def ask(self, path: str, body: Json) -> Json:
        """Ask the service for something of its own, and return its answer."""
        return await self._json("POST", path, body)

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("a Mirror is used inside `async with`")
        return self._session

    async def _send(self, path: Path, file: File, replace: bool, progress: Progress) -> None:
        answer = await self._json("GET", f"/uploads?sha256={file.sha256}")
        begun = [str(entry["url"]) for entry in _list(answer, "uploads")]
        upload = begun[0] if begun else await self._begin(path, file, replace)
        if file.size:
            await transfer.send(self._open, f"{self.url}{upload}", path, progress)
        try:
            await self._content(file.sha256)
        except UnknownFile as error:
            raise MirrorBadAnswer("it took the upload and does not have the file") from error
        if begun and file.names:
            # The attempt that began it may have wanted another name.
            await self.point(file.names[0], file.sha256, replace=replace)

    async def _begin(self, path: Path, file: File, replace: bool) -> str:
        metadata: dict[str, bytes | None] = {"sha256": file.sha256.encode()}
        if file.names:
            metadata["filename"] = file.names[0].encode()
        if replace:
            metadata["replace"] = b"1"
        try:
            with path.open("rb") as source:
                return await transfer.begin(self._open, f"{self.url}/uploads", source, metadata)
        except BROKEN as error:
            raise self._unreachable(error) from error
        except aiotus.ProtocolError as error:
            raise MirrorBadAnswer("what answers does not speak tus") from error

    async def _content(self, sha256: str) -> File:
        try:
            async with self._open.head(f"{self.url}/sha256/{sha256}") as answer:
                return File(sha256, answer.content_length or 0)
        except BROKEN as error:
            raise self._unreachable(error) from error

    async def _json(self, method: str, path: str, body: Json | None = None) -> Json:
        try:
            async with self._open.request(method, f"{self.url}{path}", json=body) as answer:
                text = await answer.read()
        except BROKEN as error:
            raise self._unreachable(error) from error
        try:
            read = json.loads(text) if text else {}
        except ValueError as error:
            raise MirrorBadAnswer(f"{method} {path} was answered with no JSON") from error
        if not isinstance(read, dict):
            raise MirrorBadAnswer(f"{method} {path} was answered with no JSON object")
        return read

    def _unreachable(self, error: Exception) -> MirrorUnreachable:
        return MirrorUnreachable(self.url, str(error) or type(error).__name__)


def _list(answer: Json, key: str) -> Sequence[Json]:
    found = answer.get(key)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise MirrorBadAnswer(f"its answer has no {key}")
    return found


def _files(answer: Json) -> Sequence[File]:
    return tuple(_file(entry) for entry in _list(answer, "files"))


def _file(entry: Json) -> File:
    names = entry.get("names")
    try:
        return File(
            sha256=str(entry["sha256"]),
            size=int(str(entry["size"])),
            names=tuple(map(str, names)) if isinstance(names, list) else (),
            stored_at=float(str(entry.get("stored_at", 0.0))),
            by=str(entry.get("by", "")),
            pinned=str(entry.get("pinned", "")),
        )
    except (KeyError, ValueError) as error:
        raise MirrorBadAnswer("it describes a file that has no sha256 and size") from error
