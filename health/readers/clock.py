"""Reads what keeps the clock: chronyc tracking, timedatectl."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable
from health.readers.json_text import only

_SPAN = re.compile(r"([-+]?\d+(?:\.\d+)?) ?(us|µs|ms|s|min|h|d)\b")
_LEAPS = ("Normal", "Insert second", "Delete second", "Not synchronised")
_FACTORS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class ClockState:
    """Whether the clock follows a source. `offset_s` None where the tool does not say."""

    synchronised: bool
    offset_s: float | None
    source: str


def read_chrony(text: str) -> ClockState:
    """Read `chronyc tracking`. Raises Unreadable."""
    only("chronyc tracking", r"^Leap status\s*:", text)
    fields = _fields(text)
    leap, stratum = fields.get("leap status"), fields.get("stratum", "")
    offset = re.match(r"(\d+(?:\.\d+)?) seconds (slow|fast)", fields.get("system time", ""))
    if leap not in _LEAPS or offset is None or not stratum.isdecimal():
        raise Unreadable("chronyc tracking", " ".join(text.split())[:80] or "it is empty")
    reference = fields.get("reference id", "")
    # An offset of nought is also what chrony prints when it follows nobody.
    follows = leap != "Not synchronised" and int(stratum) > 0 and not reference.startswith("00000000")
    sign = -1 if offset[2] == "slow" else 1
    return ClockState(follows, sign * float(offset[1]), reference)


def read_timesync(text: str) -> ClockState:
    """Read `timedatectl timesync-status` or `timedatectl status`. Raises Unreadable."""
    fields = _fields(text)
    if "system clock synchronized" in fields or "ntp synchronized" in fields:
        word = fields.get("system clock synchronized") or fields.get("ntp synchronized")
        return ClockState(word == "yes", None, fields.get("ntp service", ""))
    if "leap" not in fields and "packet count" not in fields:
        raise Unreadable("timedatectl", " ".join(text.split())[:80] or "it is empty")
    packets = fields.get("packet count", "0")
    return ClockState(
        synchronised=fields.get("leap", "") in ("normal", "insert second", "delete second")
        and packets != "0",
        offset_s=_seconds(fields.get("offset", "")),
        source=fields.get("server", ""),
    )


def read_ntpq(text: str) -> ClockState:
    """Read `ntpq -p`. Raises Unreadable."""
    if "refid" not in text:
        raise Unreadable("ntpq -p", "it has no heading")
    chosen = [line.split() for line in text.splitlines() if line.startswith("*")]
    if not chosen or len(chosen[0]) < 9:
        return ClockState(False, None, "")
    return ClockState(True, float(chosen[0][8]) / 1000, chosen[0][0][1:])


def _seconds(text: str) -> float | None:
    found = _SPAN.match(text)
    return float(found[1]) * _FACTORS[found[2]] if found else None


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {label.strip().lower(): value.strip() for label, sign, value in pairs if sign}
