"""Reads `df`, in the form that the collector asks for and in those that others saved."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_ROW = re.compile(
    r"^(?P<device>\S.*?)\s+(?P<kind>\S+)\s+(?P<size>\d+|-)\s+(?P<used>-?\d+|-)\s+(?P<free>-?\d+|-)"
    r"\s+(?P<percent>\d+%|-)\s+(?P<mount>/.*)$"
)
_HEADING = re.compile(r"^Filesystem\s+Type\s+\S.*\sMounted on$")
_LOOSE = re.compile(r"^(?P<device>\S+)\s+(?:(?P<kind>[a-z][\w.]*)\s+)?(?:[\d.]+\w?|-).*?\s(?P<percent>\d+%|-)\s+(?P<mount>/\S*)$")  # fmt: skip  # noqa: E501
_COMPLAINT = re.compile(r"^df: (?:cannot access )?['\u2018]?(?P<mount>/[^'\u2019:]*)['\u2019]?: (?P<why>.*)$")
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
        return self.kind in _IMAGES or (not self.kind and self.device.startswith("/dev/loop"))


def read_df(text: str) -> tuple[FileSystem, ...]:
    """Read the rows of `df -PT`. Raises Unreadable where a line is no row of it."""
    lines = text.splitlines()
    if not lines or not _HEADING.match(lines[0].rstrip()):
        raise Unreadable("df", "it has no heading")
    rows = []
    for line in lines[1:]:
        match = _ROW.match(line.rstrip())
        if not match:
            raise Unreadable("df", f"line {line.strip()[:60]!r}")
        rows.append(_row(match))
    return tuple(rows)


def read_df_loose(text: str) -> tuple[tuple[FileSystem, ...], tuple[tuple[str, str], ...]]:
    """Read any df, and the complaints about mounts that stand between its rows. Raises Unreadable."""
    # A long device name has its figures on the next line.
    lines = re.sub(r"^(/\S+)\n\s+(?=\S+\s+\S+\s+\S+\s+\d+%)", r"\1 ", text, flags=re.MULTILINE).splitlines()
    rows = [_row(match) for line in lines if (match := _LOOSE.match(line.rstrip()))]
    complaints = [(found["mount"], found["why"]) for line in lines if (found := _COMPLAINT.match(line))]
    if not rows:
        raise Unreadable("df", "it has no row")
    return tuple(rows), tuple(complaints)


def _row(match: re.Match[str]) -> FileSystem:
    percent = match["percent"]
    used = None if percent == "-" else int(percent[:-1])
    return FileSystem(match["device"], match["kind"] or "", used, match["mount"])
