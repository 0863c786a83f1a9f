"""Reads `df -PT`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_ROW = re.compile(
    r"^(?P<device>\S.*?)\s+(?P<kind>\S+)\s+(?P<size>\d+|-)\s+(?P<used>-?\d+|-)\s+(?P<free>-?\d+|-)"
    r"\s+(?P<percent>\d+%|-)\s+(?P<mount>/.*)$"
)
_HEADING = re.compile(r"^Filesystem\s+Type\s+\S.*\sMounted on$")
# Images are full by their nature.
_IMAGES = frozenset({"squashfs", "iso9660", "udf", "erofs", "cramfs"})


@dataclass(frozen=True, slots=True)
class FileSystem:
    """One row; `used_percent` is None for a file system that counts nothing."""

    device: str
    kind: str
    used_percent: int | None
    mount: str

    @property
    def is_image(self) -> bool:
        """Say whether it is a read-only image, which is always full."""
        return self.kind in _IMAGES


def read_df(text: str) -> tuple[FileSystem, ...]:
    """Read the rows. Raises Unreadable where a line is no row of df."""
    lines = text.splitlines()
    if not lines or not _HEADING.match(lines[0].rstrip()):
        raise Unreadable("df", "it has no heading")
    rows = []
    for line in lines[1:]:
        match = _ROW.match(line.rstrip())
        if not match:
            raise Unreadable("df", f"line {line.strip()[:60]!r}")
        percent = match["percent"]
        rows.append(
            FileSystem(
                match["device"], match["kind"], None if percent == "-" else int(percent[:-1]), match["mount"]
            )
        )
    return tuple(rows)
