"""Reads kernel log lines, whatever wrote them: dmesg in its forms, journal, syslog, kmsg, pstore."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

_LEVEL = re.compile(r"^<(\d{1,3})>")
_KMSG = re.compile(r"^(?P<priority>\d+),(?P<sequence>\d+),(?P<usec>\d+),[^;]{1,40};(?P<text>.*)$")
_FACILITY = re.compile(r"^(?:kern|user|daemon|syslog|auth\w*) *:\w+ *: ")  # dmesg --decode
# "2024-11-15T05:39:15,491363+00:00 ", with or without a node's name and the program behind it
_ISO = re.compile(
    r"^(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?P<fraction>[.,]\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?\s+"
)
_SYSLOG = re.compile(r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ (?=\S+?(?:\[\d+\])?: )")
_NODE = re.compile(r"^\S+ (?=(?:kernel|systemd[\w.-]*)(?:\[\d+\])?: )")
_PROGRAM = re.compile(r"^(?P<program>kernel|[\w.@/-]+(?=\[\d+\]))(?:\[\d+\])?: ?")
# Seconds since boot, or a date in any language, in brackets.
_STAMP = re.compile(r"^\[(?: *(?P<seconds>\d+\.\d+)|[^\]\[]*\d\d:\d\d:\d\d[^\]\[]*)\] ?")
_CALLER = re.compile(r"^\[ *[TC]\d+\] ?")
_RECORD = re.compile(r"^\{\d+\}")
END_OF_KMSG = "# end of kmsg"


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One line without its prefix. Times are None where the form has none."""

    text: str
    since_boot_s: float | None = None
    wall_clock: float | None = None  # seconds since 1970
    sequence: int | None = None
    priority: int | None = None
    program: str = "kernel"

    @property
    def facility(self) -> int | None:
        """Return who wrote it: 0 is the kernel, others wrote to /dev/kmsg."""
        return None if self.priority is None else self.priority >> 3


# Several checks look at one log, one after the other.
@lru_cache(maxsize=4)
def read_kernel(text: str) -> tuple[KernelLine, ...]:
    """Return the lines of a log in any of its forms. A line without a known prefix comes as it is."""
    lines = (raw.rstrip("\r") for raw in text.splitlines())
    skipped = (" SUBSYSTEM=", " DEVICE=", END_OF_KMSG)
    return tuple(_line(line) for line in lines if line and not line.startswith(skipped))


def _line(line: str) -> KernelLine:
    if found := _KMSG.match(line):
        return KernelLine(
            text=_bare(_unescape(found["text"])),
            since_boot_s=int(found["usec"]) / 1e6,
            sequence=int(found["sequence"]),
            priority=int(found["priority"]),
        )
    priority = None
    if level := _LEVEL.match(line):
        priority = int(level[1])
        line = line[level.end() :]
    line = _FACILITY.sub("", line, count=1)
    wall = None
    if iso := _ISO.match(line):
        wall = _wall(iso)
        line = _NODE.sub("", line[iso.end() :], count=1)
    else:
        line = _SYSLOG.sub("", line, count=1)
        line = _NODE.sub("", line, count=1)
    program = "kernel"
    if found := _PROGRAM.match(line):
        program = found["program"]
        line = line[found.end() :]
    seconds = None
    if stamp := _STAMP.match(line):
        seconds = float(stamp["seconds"]) if stamp["seconds"] else None
        line = line[stamp.end() :]
        line = _NODE.sub("", line, count=1)
        if found := _PROGRAM.match(line):
            program = found["program"]
            line = line[found.end() :]
    return KernelLine(_bare(line), seconds, wall, None, priority, program)


def _bare(text: str) -> str:
    text = _CALLER.sub("", text, count=1)
    return _RECORD.sub("", text, count=1).strip()


def _unescape(text: str) -> str:
    """Undo kmsg's own escapes of bytes that are not printable."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), text)


def _wall(found: re.Match[str]) -> float | None:
    zone = (found["zone"] or "+00:00").replace("Z", "+00:00")
    if ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    try:
        return datetime.fromisoformat(found["iso"] + zone).timestamp()
    except (ValueError, OverflowError):
        return None
