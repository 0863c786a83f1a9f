"""OS images that MAAS holds, and how one is brought there in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from provision.maas import parse
from provision.maas.errors import MaasBadAnswer
from provision.maas.model import BootResource
from provision.maas.transport import Call, form_fields

Send = Callable[[Call], Awaitable[object]]

_BYTES = "application/octet-stream"
_PIECE = 4 << 20  # bytes; MAAS takes no more than its request limit in one


@dataclass(frozen=True, slots=True)
class NewImage:
    """An image to upload. `kind` is MAAS's file type: tgz, tbz, txz, ddtgz, ddxz, ddraw, …

    `base` names the release that a custom image is built from; MAAS refuses to deploy one without.
    """

    name: str
    architecture: str
    path: Path
    kind: str = "tgz"
    title: str = ""
    base: str = ""


class Images:
    """The calls about boot resources. `send` sends a call."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def read(self) -> tuple[BootResource, ...]:
        """Return the images that MAAS holds."""
        raw = await self._send(Call("boot resources", "GET", "boot-resources/"))
        return parse.each(parse.boot_resource, raw, "boot resources")

    async def upload(self, new: NewImage, *, piece_bytes: int = _PIECE) -> BootResource:
        """Announce an image and send it, piece by piece. One of the same name is replaced.

        Raises MaasUncertain where the answer to a piece was lost: ask for it again as a whole.
        """
        size, sha256 = _measure(new.path)
        form = form_fields(
            {
                "name": new.name,
                "architecture": new.architecture,
                "filetype": new.kind,
                "title": new.title,
                "base_image": new.base,
                "sha256": sha256,
                "size": str(size),
            }
        )
        raw = await self._send(Call("create boot resource", "POST", "boot-resources/", form=form))
        found = parse.boot_resource(raw)
        # MAAS wants no bytes where it has a file of this content already.
        for place in (one.upload_path for one in parse.image_files(raw) if not one.complete):
            if place is not None:
                await self._send_file(new.path, place, piece_bytes)
        if not await self.complete(found.id):
            raise MaasBadAnswer(f"boot resource {new.name}", "MAAS took every piece and lacks some")
        return found

    async def _send_file(self, path: Path, place: str, piece_bytes: int) -> None:
        with path.open("rb") as file:
            while piece := file.read(piece_bytes):
                await self._send(Call("upload", "PUT", place, body=piece, content_type=_BYTES))

    async def complete(self, image: int) -> bool:
        """Whether MAAS holds all of an image."""
        raw = await self._send(Call("boot resource", "GET", f"boot-resources/{image}/"))
        files = parse.image_files(raw)
        return bool(files) and all(one.complete for one in files)

    async def delete(self, image: int) -> None:
        """Remove an image."""
        await self._send(Call("delete boot resource", "DELETE", f"boot-resources/{image}/"))


def _measure(path: Path) -> tuple[int, str]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return path.stat().st_size, digest.hexdigest()
