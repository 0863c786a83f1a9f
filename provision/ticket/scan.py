"""Looks through a finished ticket for every secret that the site knows. Fails closed."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Protocol
from urllib.parse import urlsplit

from inventory.errors import SecretMissing
from provision.access import Access
from provision.ticket.secret_forms import LEAST, folded_forms, plain_forms

_KEY = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[0-9]")
_KEY_WORDS = "PRIVATE KEY-----"
_BLANKS = re.compile(rb"\\[nrt]|[\s\\]+")  # what may break base64: white space, also as JSON writes it
_KEY_LINE = 32  # letters of a private key's line that no other text has
_WINDOW = LEAST
_MANY = 400  # needles; above, only those are looked for whose first bytes occur at all
_DEEPEST = 3
_MOST_UNPACKED = 512 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


_STREAMS: tuple[tuple[bytes, Callable[[IO[bytes]], _Readable]], ...] = (
    (b"\x1f\x8b", lambda source: gzip.GzipFile(fileobj=source)),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)


@dataclass(frozen=True, slots=True)
class Needles:
    """What is looked for: form -> whose it is. `folded` ones are looked for in text without blanks.

    `unknown`: references that lead to nothing that could be looked for, and why.
    """

    plain: Mapping[bytes, str] = field(repr=False)
    folded: Mapping[bytes, str] = field(repr=False)
    names: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A file that holds a secret; `secret` names it, never shows it."""

    file: str
    secret: str


def site_needles(access: Access) -> Needles:
    """Resolve every secret that the site files name, in every form."""
    secrets: dict[str, str] = {}
    unknown: list[tuple[str, str]] = []
    references = {access.site.maas.key, access.site.ssh.key}
    for credential in access.site.credentials.values():
        references |= {credential.password, *([credential.kg] if credential.kg else [])}
    for reference in sorted(references):
        try:
            secrets[reference] = access.secret(reference).reveal()
        except SecretMissing as exc:
            unknown.append((reference, str(exc)))
    password = urlsplit(access.settings.database).password
    if password:
        secrets["the database's password"] = password
    return make_needles(secrets, unknown)


def make_needles(secrets: Mapping[str, str], unknown: list[tuple[str, str]] | None = None) -> Needles:
    """Return what to look for; `secrets` maps what a secret is called to the secret."""
    plain: dict[bytes, str] = {}
    folded: dict[bytes, str] = dict.fromkeys(folded_forms(_KEY_WORDS), "a private key")
    told = list(unknown or ())
    names = []
    for name, secret in secrets.items():
        parts = _parts(secret)
        if all(len(part.encode()) < LEAST for part in parts):
            told.append((name, "it is too short to be told from ordinary text"))
            continue
        names.append(name)
        for part in parts:
            if len(part.encode()) >= LEAST:
                plain |= dict.fromkeys((form for form in plain_forms(part) if len(form) >= LEAST), name)
                folded |= dict.fromkeys(folded_forms(part), name)
    return Needles(plain, folded, tuple(names), tuple(told))


def _parts(secret: str) -> list[str]:
    """Return what gives a secret away: a key's lines, each part of `consumer:token:secret`, all of it."""
    if "PRIVATE KEY-----" in secret:
        lines = [line.strip() for line in secret.splitlines() if "-----" not in line]
        return [line for line in lines if len(line) >= _KEY_LINE]
    parts = [secret]
    if re.fullmatch(r"[A-Za-z0-9]{8,}(?::[A-Za-z0-9]{8,}){2}", secret):
        parts += secret.split(":")
    return parts


def scan(files: Mapping[str, bytes], needles: Needles) -> Hit | None:
    """Return the first file that holds a secret, in archives inside it too; None where none does."""
    for path, data in sorted(files.items()):
        for name, content in _unfolded(path, data):
            secret = _found(content, needles)
            if secret:
                return Hit(name, secret)
    return None


def sealed(path: str, data: bytes) -> bool:
    """Tell whether an archive cannot be looked into: encrypted, damaged, too deep or too large."""
    try:
        for _ in _unfolded(path, data):
            pass
    except Exception:  # noqa: BLE001  unpackers raise whatever hostile bytes make them raise
        return True
    return False


def _found(data: bytes, needles: Needles) -> str:
    if _KEY.search(data):
        return "a private key"
    for wanted, text in ((needles.plain, data), (needles.folded, _BLANKS.sub(b"", data))):
        for form in _likely(wanted, text):
            if form in text:
                return wanted[form]
    return ""


def _likely(wanted: Mapping[bytes, str], text: bytes) -> Iterator[bytes]:
    """Leave out needles whose beginning is nowhere in `text`: sites may have a password for each BMC."""
    if len(wanted) <= _MANY:
        return iter(wanted)
    windows = {text[at : at + _WINDOW] for at in range(len(text) - _WINDOW + 1)}
    return (form for form in wanted if form[:_WINDOW] in windows)


def _unfolded(
    path: str, data: bytes, depth: int = 0, budget: list[int] | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield a file, and what is in it where it is an archive. Raises ValueError beyond the limits."""
    budget = [_MOST_UNPACKED] if budget is None else budget
    yield path, data
    if path.endswith(".cast"):
        yield path, _typed(data)
    for name, content in _members(data, budget):
        if depth >= _DEEPEST:
            raise ValueError("archives in archives in archives")
        yield path, name.encode("utf-8", "surrogateescape")
        yield from _unfolded(f"{path} ({name})" if name else path, content, depth + 1, budget)


def _members(data: bytes, budget: list[int]) -> Iterator[tuple[str, bytes]]:
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                with archive.open(entry) as member:
                    yield entry.filename, _taken(member, budget)
    elif data[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(data)) as tape:
            for item in tape:
                content = tape.extractfile(item)
                if content is not None:
                    yield item.name, _taken(content, budget)
    else:
        for magic, unpack in _STREAMS:
            if data.startswith(magic):
                yield "", _taken(unpack(io.BytesIO(data)), budget)


def _typed(cast: bytes) -> bytes:
    """Return what an asciicast shows, in one piece: what is typed comes letter by letter."""
    rows = (json.loads(line) for line in cast.splitlines()[1:])
    return "".join(row[2] for row in rows if row[1] == "o").encode("utf-8", "surrogateescape")


def _taken(member: _Readable, budget: list[int]) -> bytes:
    """Unpack a member within what is left of the budget: a small archive may hold a huge one."""
    data = member.read(budget[0] + 1)
    if len(data) > budget[0]:
        raise ValueError(f"it unpacks to more than {_MOST_UNPACKED >> 20} MB")
    budget[0] -= len(data)
    return data
