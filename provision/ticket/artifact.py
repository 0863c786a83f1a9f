"""What a collector brings, in forms that can be redacted before any of it is written."""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from typing import Protocol

import pyte

from bmc.console import picture
from bmc.console.render import screen_text
from provision.ticket.redact import Redactor

_MOST_UNPACKED = 256 << 20


class Artifact(Protocol):
    """The content of one file. `texts` is what the redactor learns names from."""

    def texts(self) -> Iterator[str]: ...

    def rendered(self, redactor: Redactor) -> bytes: ...


@dataclass(frozen=True, slots=True)
class File:
    """One file of a ticket; `path` is relative, with slashes."""

    path: str
    content: Artifact


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; bytes that are no UTF-8 come out as they went in."""

    data: bytes

    def texts(self) -> Iterator[str]:
        yield self.data.decode("utf-8", "surrogateescape")

    def rendered(self, redactor: Redactor) -> bytes:
        text = redactor.text(self.data.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class Json:
    """A document; strings in it are redacted one by one, so that no escape hides a name."""

    value: object

    def texts(self) -> Iterator[str]:
        return _strings(self.value)

    def rendered(self, redactor: Redactor) -> bytes:
        return _document(_redacted(self.value, redactor), indent=1)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """One document a line."""

    values: Sequence[object]

    def texts(self) -> Iterator[str]:
        return _strings(self.values)

    def rendered(self, redactor: Redactor) -> bytes:
        return b"".join(_document(_redacted(value, redactor), indent=None) for value in self.values)


@dataclass(frozen=True, slots=True)
class Cast:
    """An asciicast: a header, then [seconds, kind, text]. What is written in pieces is redacted as one."""

    header: Mapping[str, object]
    rows: Sequence[tuple[float, str, str]]

    def texts(self) -> Iterator[str]:
        yield "".join(text for _, kind, text in self.rows if kind == "o")

    def rendered(self, redactor: Redactor) -> bytes:
        shown = iter(redactor.pieces([text for _, kind, text in self.rows if kind == "o"]))
        lines = [_document(_redacted(self.header, redactor), indent=None)]
        for at, kind, text in self.rows:
            lines.append(_document([at, kind, next(shown) if kind == "o" else redactor.text(text)], None))
        return b"".join(lines)


@dataclass(frozen=True, slots=True)
class ScreenText:
    """A terminal screen as text."""

    shown: pyte.Screen

    def texts(self) -> Iterator[str]:
        yield screen_text(self.shown)

    def rendered(self, redactor: Redactor) -> bytes:
        return screen_text(_redacted_screen(self.shown, redactor)).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class ScreenPicture:
    """A terminal screen as PNG, drawn from what is left after redaction."""

    shown: pyte.Screen

    def texts(self) -> Iterator[str]:
        return iter(())

    def rendered(self, redactor: Redactor) -> bytes:
        return picture.png(_redacted_screen(self.shown, redactor))


@dataclass(frozen=True, slots=True)
class Packed:
    """Text compressed with gzip, as some tools write it."""

    data: bytes

    def texts(self) -> Iterator[str]:
        yield self._unpacked().decode("utf-8", "surrogateescape")

    def rendered(self, redactor: Redactor) -> bytes:
        return gzip.compress(Text(self._unpacked()).rendered(redactor), mtime=0)

    def _unpacked(self) -> bytes:
        """Return the text. Raises ValueError where it is no gzip, or grows too far."""
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(self.data)) as file:
                data = file.read(_MOST_UNPACKED + 1)
        except (OSError, EOFError, zlib.error) as exc:
            raise ValueError("it is no gzip file") from exc
        if len(data) > _MOST_UNPACKED:
            raise ValueError("it unpacks to more than 256 MB")
        return data


@dataclass(frozen=True, slots=True)
class Opaque:
    """Bytes that nobody here can redact: the vendor's own dump, a screenshot."""

    data: bytes

    def texts(self) -> Iterator[str]:
        return iter(())

    def rendered(self, redactor: Redactor) -> bytes:  # noqa: ARG002  the same for every profile
        return self.data


def _document(value: object, indent: int | None) -> bytes:
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=_plain)
    return (text + "\n").encode("utf-8", "surrogateescape")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _strings(value: object) -> Iterator[str]:
    """Yield every text, and each `key=text`, which is how the redactor knows what a text names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, str):
                yield f"{key}={inner}" if "\n" not in inner else inner
            else:
                yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _strings(asdict(value))


def _redacted(value: object, redactor: Redactor) -> object:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, Mapping):
        return {
            _redacted_key(str(key), redactor): _redacted_member(str(key), inner, redactor)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redacted(inner, redactor) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _redacted(asdict(value), redactor)
    return value


def _redacted_key(key: str, redactor: Redactor) -> str:
    """Leave a document's own words alone: a program looks for them. A name has more than letters."""
    return key if key.replace("_", "").isalpha() else redactor.text(key)


def _redacted_member(key: str, value: object, redactor: Redactor) -> object:
    if not isinstance(value, str):
        return _redacted(value, redactor)
    if key == "base64":  # output of a tool that was no UTF-8
        try:
            inner = base64.b64decode(value, validate=True)
        except (ValueError, binascii.Error):
            return redactor.text(value)
        return base64.b64encode(Text(inner).rendered(redactor)).decode("ascii")
    return redactor.member(key, value)


def _redacted_screen(shown: pyte.Screen, redactor: Redactor) -> pyte.Screen:
    """Return a copy of a screen, redacted. A row that is full to its end goes on in the next."""
    rows = [[shown.buffer[row][column] for column in range(shown.columns)] for row in range(shown.lines)]
    texts = ["".join(cell.data[:1] or " " for cell in row) for row in rows]
    pieces: list[str] = []
    for text in texts:
        pieces += [text, "" if text[-1:].strip() else "\n"]
    redacted = redactor.pieces(pieces)[::2]
    copy = pyte.Screen(shown.columns, shown.lines)
    for number, (row, before, after) in enumerate(zip(rows, texts, redacted, strict=True)):
        cells = row if before == after else _restyled(row, before, after)
        for column, cell in enumerate(cells[: shown.columns]):
            copy.buffer[number][column] = cell
    copy.cursor.x, copy.cursor.y, copy.cursor.hidden = shown.cursor.x, shown.cursor.y, shown.cursor.hidden
    return copy


def _restyled(row: Sequence[pyte.Char], before: str, after: str) -> list[pyte.Char]:
    """Give the letters of `after` the colours that stood at their place, or nearest to it."""
    width = len(before)
    start = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), width)
    moved = width - len(after)
    cells = []
    for column in range(width):
        letter = after[column] if column < len(after) else " "
        # What stands behind the first change has moved by the difference in length.
        source = column if column <= start else min(max(column + moved, start), width - 1)
        cells.append(row[source]._replace(data=letter))
    return cells
