"""A registry as we ask it (API v2): which digest a name leads to, and which blobs an image has."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import aiohttp

from inventory.secrets import Secret
from provision.images.errors import RegistryRejected, RegistryUnreachable, UnknownImage

_NAME = re.compile(
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})|@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_TIMES = aiohttp.ClientTimeout(total=60)


@dataclass(frozen=True, slots=True)
class Name:
    """REPOSITORY:TAG or REPOSITORY@DIGEST, without a host; `reference` is the tag or the digest."""

    repository: str
    reference: str

    def __str__(self) -> str:
        return f"{self.repository}{'@' if ':' in self.reference else ':'}{self.reference}"

    @classmethod
    def parse(cls, text: str) -> Name | None:
        """Return the name that `text` is, or None; no tag means latest."""
        match = _NAME.fullmatch(text)
        if match is None:
            return None
        return cls(match["repository"], match["digest"] or match["tag"] or "latest")


@dataclass(frozen=True, slots=True)
class Image:
    """What a name leads to: the digest of its manifest, and of every blob behind it."""

    digest: str
    blobs: tuple[str, ...]
    size: int


class Registry:
    """One registry; enter it with `async with`. Raises the errors of its package."""

    def __init__(self, url: str, username: str = "", password: Secret | None = None) -> None:
        self.url = url.rstrip("/")
        self._login = aiohttp.BasicAuth(username, password.reveal()) if username and password else None
        self._session: aiohttp.ClientSession | None = None

    @property
    def host(self) -> str:
        """The registry's name as images carry it, with its port."""
        return urlsplit(self.url).netloc

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(auth=self._login, timeout=_TIMES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def image(self, name: Name) -> Image:
        """Return what a name leads to; of an index, all its platforms. Raises UnknownImage."""
        text = await self._manifest(name)
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        if ":" in name.reference and digest != name.reference:
            raise RegistryUnreachable(self.url, f"it gave other bytes for {name}")
        try:
            read = json.loads(text)
            children = [str(child["digest"]) for child in read.get("manifests", ())]
            blobs = [read["config"], *read["layers"]] if not children else []
            found = [(str(blob["digest"]), int(blob["size"])) for blob in blobs]
        except (ValueError, KeyError, TypeError) as error:
            raise RegistryUnreachable(self.url, f"what it gave for {name} is no manifest") from error
        for child in children:
            image = await self.image(Name(name.repository, child))
            found += [(child, 0), *((blob, 0) for blob in image.blobs), ("", image.size)]
        size = sum(size for _, size in found)
        return Image(digest, tuple(dict.fromkeys(blob for blob, _ in found if blob)), size)

    async def _manifest(self, name: Name) -> bytes:
        if self._session is None:
            raise RuntimeError("a Registry is used inside `async with`")
        url = f"{self.url}/v2/{name.repository}/manifests/{name.reference}"
        headers: Mapping[str, str] = {"Accept": _MANIFESTS}
        try:
            async with self._session.get(url, headers=headers) as answer:
                text = await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RegistryUnreachable(self.url, str(error) or "no answer") from error
        if answer.status == 404:
            raise UnknownImage(str(name))
        if answer.status in {401, 403}:
            raise RegistryRejected(f"read {name}")
        if answer.status != 200:
            raise RegistryUnreachable(self.url, f"{name} was answered with HTTP status {answer.status}")
        return text
