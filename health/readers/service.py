"""Reads systemctl: lists of units, one unit's status."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_COUNT = re.compile(r"^(\d+) (?:loaded )?units? listed\.")
_ROW = re.compile(
    r"^(?P<mark>[●*○\u00d7↻x] +)?(?P<unit>\S+\.(?:service|socket|target|device|mount|automount|swap|timer"
    r"|path|slice|scope))\s+(?P<load>loaded|not-found|masked|error|bad-setting|merged|stub)\s+(?P<active>[a-z-]+)\s+(?P<sub>[\w-]+)"
    r"(?:\s+(?P<about>.*))?$"
)
_STATUS = re.compile(r"^[●*○\u00d7↻x]? ?(?P<unit>\S+\.\w+)(?: - (?P<about>.*))?$")
_ACTIVE = re.compile(r"^\s+Active: (?P<active>[a-z-]+)(?: \((?P<sub>[^)]*)\))?")


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit as systemctl shows it. `text` is what its status printed beside."""

    name: str
    load: str
    active: str
    sub: str
    about: str
    text: str = ""


def read_units(text: str, *, counted: bool = True) -> tuple[Unit, ...]:
    """Read a list of units. Raises Unreadable unless systemctl's own count at the end agrees."""
    units = []
    count = None
    for line in text.splitlines():
        stripped = line.strip()
        if found := _COUNT.match(stripped):
            if count is not None:
                raise Unreadable("systemctl", "its count comes twice")
            count = int(found[1])
        elif row := _ROW.match(stripped):
            units.append(
                Unit(row["unit"], row["load"], row["active"], row["sub"], (row["about"] or "").strip())
            )
    if counted and not re.search(
        r"^\s*UNIT\s+LOAD\s+ACTIVE\s+SUB(?:\s+JOB)?\s+DESCRIPTION\s*$", text, re.MULTILINE
    ):
        raise Unreadable("systemctl", "it has no heading")
    if counted and count is None:
        raise Unreadable("systemctl", "its last line, the count, is missing")
    if counted and count != len(units):
        raise Unreadable("systemctl", f"it counts {count} units and lists {len(units)}")
    if not units and count is None:
        raise Unreadable("systemctl", "it lists no unit")
    return tuple(units)


def read_unit_status(text: str) -> tuple[Unit, ...]:
    """Read `systemctl status UNIT...`. Raises Unreadable where no unit tells whether it is active."""
    units: list[Unit] = []
    name, about = None, ""
    for line in text.splitlines():
        if (head := _STATUS.match(line)) and not line.startswith(" "):
            name, about = head["unit"], head["about"] or ""
        elif (state := _ACTIVE.match(line)) and name:
            units.append(Unit(name, "loaded", state["active"], state["sub"] or "", about, text))
            name = None
    if not units:
        raise Unreadable("systemctl status", "no unit tells whether it is active")
    return tuple(units)


def read_properties(text: str) -> tuple[dict[str, str], ...]:
    """Read `systemctl show -p A,B UNIT...`: one group of fields a unit, parted by empty lines."""
    groups = []
    for block in re.split(r"\n\s*\n", text.strip()):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if fields:
            groups.append(fields)
    if not groups:
        raise Unreadable("systemctl show", "it shows nothing")
    return tuple(groups)
