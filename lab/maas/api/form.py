"""What a request carries: fields that may be repeated, files, and MAAS's ideas of yes and no."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from aiohttp import BodyPartReader, web

_YES = frozenset({"1", "true", "on", "yes", "t", "y"})


class Form:
    """Fields in the order in which they came."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = list(pairs)

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self._pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)

    def names(self) -> list[str]:
        """Return every field's name once, in order."""
        return list(dict.fromkeys(key for key, _ in self._pairs))

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for key, value in self._pairs if key == name]

    def one(self, name: str, default: str = "") -> str:
        """Return the last value of a field."""
        found = self.all(name)
        return found[-1] if found else default

    def given(self, name: str) -> str | None:
        """Return the last value of a field, or None when it was not sent."""
        return self.one(name) if name in self else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return whether a field says yes."""
        return self.one(name).strip().lower() in _YES if name in self else default

    def listed(self, name: str) -> list[str]:
        """Return all values of a field, split at commas."""
        return [part.strip() for value in self.all(name) for part in value.split(",") if part.strip()]


@dataclass(slots=True)
class Body:
    """A request's form, its files, and its bytes when it is neither."""

    form: Form
    files: dict[str, bytes] = field(default_factory=dict)
    raw: bytes = b""


async def read_body(request: web.Request) -> Body:
    """Read a request's body whatever its form."""
    if request.content_type == "multipart/form-data":
        return await _read_parts(request)
    raw = await request.read()
    if request.content_type == "application/x-www-form-urlencoded":
        return Body(Form(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True)))
    return Body(Form(), raw=raw)


async def _read_parts(request: web.Request) -> Body:
    """Read a multipart form. Clients send one empty, nameless part when they have nothing to say."""
    pairs: list[tuple[str, str]] = []
    files: dict[str, bytes] = {}
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        content = bytes(await part.read(decode=True))
        if part.filename is None:
            pairs.append((part.name, content.decode("utf-8", "replace")))
        else:
            files[part.name] = content
    return Body(Form(pairs), files)
