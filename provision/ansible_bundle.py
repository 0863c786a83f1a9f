"""Packs a part of Muster and what it needs into one tar, for nodes without a package index of Python's.

    python -m provision.ansible_bundle --for mirror --out mirror.tar

The tar is the same for the same environment, to the byte, so that its sha256 can be pinned. It runs on
nodes with the Python that it was made with (the minor version counts), and says which in its name.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import io
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

_CHECKOUT = Path(__file__).resolve().parent.parent
_SKIPPED = {"__pycache__", "tests", "ansible_test"}


@dataclass(frozen=True, slots=True)
class Contents:
    """What a bundle holds: folders of ours, and distributions with all that they require."""

    folders: tuple[str, ...]
    distributions: tuple[str, ...]


CONTENTS = {
    "mirror": Contents(
        ("provision/__init__.py", "provision/mirror", "provision/spread"),
        ("httptools", "jinja2", "libtorrent", "pyyaml", "starlette", "uvicorn", "uvloop"),
    ),
    "worker": Contents(("provision/ansible_guard.py",), ("ansible-core", "ansible-runner")),
}


def required(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distributions and all that they require here. Raises PackageNotFoundError."""
    found: dict[str, None] = {}
    ahead = [_normal(name) for name in names]
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        found[name] = None
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                ahead.append(_normal(requirement.name))
    return tuple(sorted(found))


def pack(contents: Contents, target: Path) -> str:
    """Write the tar and return its sha256. A bundle that was begun and not finished is not there."""
    entries = dict(_ours(contents.folders))
    for name in required(contents.distributions):
        entries |= dict(_files(name))
    part = target.with_name(f".{target.name}.part")
    with tarfile.open(part, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, path in sorted(entries.items()):
            data = path.read_bytes()
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(data), 0o755 if path.stat().st_mode & 0o100 else 0o644
            tar.addfile(about, io.BytesIO(data))
    with part.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    part.rename(target)
    return digest


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _ours(folders: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        top = _CHECKOUT / folder
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(_CHECKOUT).as_posix(), path


def _files(name: str) -> Iterator[tuple[str, Path]]:
    """Give the files of a distribution that lie below its packages' folder; programs are left out."""
    distribution = importlib.metadata.distribution(name)
    for file in distribution.files or ():
        inside = ".." not in file.parts and _SKIPPED.isdisjoint(file.parts)
        path = Path(str(distribution.locate_file(file)))
        if inside and file.suffix != ".pyc" and path.is_file():
            yield file.as_posix(), path


def main(words: Sequence[str] | None = None) -> int:
    """Pack a bundle and print its sha256."""
    parser = argparse.ArgumentParser(prog="python -m provision.ansible_bundle", description=__doc__)
    parser.add_argument("--for", dest="what", required=True, choices=sorted(CONTENTS))
    parser.add_argument("--out", required=True, type=Path, help="the tar to write")
    given = parser.parse_args(words)
    digest = pack(CONTENTS[given.what], given.out)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    sys.stdout.write(f"{digest}  {given.out}  python{version}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
