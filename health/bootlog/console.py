"""A boot as a serial console showed it: which boot, which lines, and whether they are proven to be all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from health.readers.kernel import KernelLine

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# "[    0.000000] ", and the same behind which CONFIG_PRINTK_CALLER names its thread.
_STAMP = re.compile(r"\[ *(\d+\.\d{6})\](?:\[ *[TC]\d+\])? ?")
_FIRST = re.compile(r"\[ *0\.0{6}\](?:\[ *[TC]\d+\])? (?:Linux version |Booting Linux on physical CPU)")
_DROPPED = re.compile(r"\*\* \d+ printk messages dropped \*\*|printk: \d+ messages? suppressed")
_UP = re.compile(
    r"(?m)^\S+ login: ?|Reached target .*?(?:Multi-User|Graphical)|systemd\[1\]: Startup finished in "
    r"|Cloud-init v\. \S+ finished"
)
_USER_SPACE = re.compile(r"Run \S+ as init process|systemd\[1\]: systemd \d+")
_COMMAND_LINE = re.compile(r"(?:Kernel c|C)ommand line: (?P<words>.*)")
_CLOCK_SET = re.compile(r"setting system clock to .*\((?P<epoch>\d+)\)$")
_INFO = 7  # a console shows what is below its level; this one shows all but debugging
_BACK_S = 0.01  # two CPUs may stamp their lines in another order than they are written
_CLOCK_S = 300.0  # a board's clock may be so wrong until the time daemon has set it


@dataclass(frozen=True, slots=True)
class Console:
    """What a console showed since a node's power came on; `gaps` is where its recorder lost bytes."""

    text: str
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsoleBoot:
    """The last boot on a console. `gap` says why its lines are not all; None where they are proven to be.

    `booted_at` is when it began by the board's own clock, seconds since 1970; None where it is not said.
    """

    lines: tuple[KernelLine, ...]
    gap: str | None
    booted_at: float | None = None

    def is_boot_of(self, boot_time: float) -> bool:
        """Say whether it is proven to be the boot that began at `boot_time`."""
        return self.booted_at is not None and abs(self.booted_at - boot_time) <= _CLOCK_S


def read_console(console: Console) -> ConsoleBoot:
    """Return the last boot that a console shows."""
    text = _ANSI.sub("", console.text).replace("\r\n", "\n").replace("\r", "\n")
    start = None
    for start in _FIRST.finditer(text):  # noqa: B007  the last one is wanted
        pass
    if start is None:
        return ConsoleBoot((), "the console shows no boot from its first line")
    shown = text[start.start() :]
    lines = tuple(_kernel_lines(shown))
    return ConsoleBoot(lines, _gap(console, shown, lines), _booted_at(lines))


def _kernel_lines(shown: str) -> Iterator[KernelLine]:
    """Give what the kernel said; a program's words may stand before it on one line."""
    for row in shown.split("\n"):
        pieces = _STAMP.split(row)
        for stamp, said in zip(pieces[1::2], pieces[2::2], strict=True):
            if said.strip():
                yield KernelLine(said.strip(), float(stamp))


def _gap(console: Console, shown: str, lines: tuple[KernelLine, ...]) -> str | None:
    reasons = (
        (console.gaps, "the console's record has a gap: {}", console.gaps[:1]),
        (_DROPPED.search(shown), "the kernel dropped lines that its console was too slow for", ()),
        (quiet := _quiet(lines), "the kernel was told to keep its console quiet ({})", (quiet,)),
        (mangled := _mangled(shown), "a line of the kernel is mangled: {}", (mangled,)),
        (back := _back(lines), "its time goes back {}", (back,)),
        (not _UP.search(shown), "the console ends before the node was up", ()),
    )
    return next((why.format(*what)[:160] for wrong, why, what in reasons if wrong), None)


def _back(lines: tuple[KernelLine, ...]) -> str | None:
    stamps = [line.since_boot_s or 0.0 for line in lines]
    for earlier, later in pairwise(stamps):
        if later < earlier - _BACK_S:
            return f"from {earlier:.6f} to {later:.6f}"
    return None


def _quiet(lines: tuple[KernelLine, ...]) -> str | None:
    found = next((match for line in lines if (match := _COMMAND_LINE.match(line.text))), None)
    if found is None:
        return "no command line is shown"
    words = found["words"].split()
    if "ignore_loglevel" in words or "debug" in words:
        return None
    for word in reversed(words):
        if word == "quiet":
            return word
        if word.startswith("loglevel="):
            level = word.partition("=")[2]
            return None if level.isdecimal() and int(level) >= _INFO else word
    return None


def _mangled(shown: str) -> str | None:
    """Return a row that lost its beginning while nothing but the kernel could write, or holds noise."""
    alone = True
    for row in shown.split("\n"):
        if "\ufffd" in row or "\x00" in row:
            return row
        if alone and row.strip() and not _STAMP.match(row):
            return row
        alone = alone and not _USER_SPACE.search(row)
    return None


def _booted_at(lines: tuple[KernelLine, ...]) -> float | None:
    for line in lines:
        if (found := _CLOCK_SET.search(line.text)) and line.since_boot_s is not None:
            return float(found["epoch"]) - line.since_boot_s
    return None
