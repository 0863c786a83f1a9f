"""Reads what fabric tools print: iblinkinfo, ibnetdiscover, perfquery, ibqueryerrors, ibdiagnet, ibswinfo."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_LINK = re.compile(
    r"^\s*(?:(?P<guid>0x[0-9a-f]+)\s+)?(?:\"(?P<name>[^\"]*)\"\s+)?(?P<lid>\d+)\s+(?P<port>\d+)\[[^\]]*\]"
    r" ==\(\s*(?P<link>.*?)\s*\)==>\s*(?P<rest>.*)$"
)
_ACTIVE = re.compile(r"^(?P<width>\d+X)\s+(?P<speed>[\d.]+) Gbps\s+(?P<state>\w+)/\s*(?P<physical>\w+)$")
_BETTER = re.compile(r"Could be ([^)]*?)\s*\)")
_NODE = re.compile(r"^(?P<kind>CA|Switch|Router)(?: (?P<guid>0x[0-9a-f]+))?: ?(?P<name>.*?):?\s*$")
_COUNTER = re.compile(r"^(?P<name>[A-Za-z]\w+):\.+(?P<value>\S+)\s*$")
_ERRORS = re.compile(r"GUID (?P<guid>0x[0-9a-f]+) port (?P<port>\d+|ALL): (?P<counters>\[.*\])")
_ERROR = re.compile(r"\[(?P<name>\w+) == (?P<value>\d+)")


@dataclass(frozen=True, slots=True)
class FabricLink:
    """One link from one end. `better` is what both ends could do; `far` the other end's name."""

    node: str
    kind: str  # CA, Switch
    port: int
    width: str
    speed: float | None  # Gb/s a lane
    state: str
    better: str
    far: str


@dataclass(frozen=True, slots=True)
class PortCounters:
    """Counters of one port, since they were last cleared."""

    identity: str
    counters: dict[str, int]


@dataclass(frozen=True, slots=True)
class SwitchPart:
    """One "label | value" of ibswinfo that tells a state."""

    unit: str
    label: str
    value: str


def read_linkinfo(text: str) -> tuple[FabricLink, ...]:
    """Read `iblinkinfo`, in groups or one line a link. Raises Unreadable."""
    links = []
    node, kind = "", ""
    for line in text.splitlines():
        if found := _LINK.match(line):
            links.append(_fabric_link(found, node, kind))
        elif head := _NODE.match(line):
            node, kind = head["name"], head["kind"]
    if not links:
        raise Unreadable("iblinkinfo", "it shows no link")
    return tuple(links)


def _fabric_link(found: re.Match[str], node: str, kind: str) -> FabricLink:
    active = _ACTIVE.match(found["link"])
    better = _BETTER.search(found["rest"])
    far = re.search(r'"([^"]*)"', found["rest"])
    return FabricLink(
        node=(found["name"] or node).strip(),
        kind=kind,
        port=int(found["port"]),
        width=active["width"] if active else "",
        speed=float(active["speed"]) if active else None,
        state=active["state"] if active else found["link"].split("/")[0].strip(),
        better=better[1] if better else "",
        far=far[1] if far else "",
    )


def read_perfquery(text: str) -> tuple[PortCounters, ...]:
    """Read `perfquery`, of any number of ports. Raises Unreadable."""
    ports = []
    for block in re.split(r"^# Port", text, flags=re.MULTILINE)[1:]:
        title = re.search(r"[Ll]id (\d+) port (\d+)", block)
        rows = {
            row["name"]: _count(row["value"]) for line in block.splitlines() if (row := _COUNTER.match(line))
        }
        who = f"lid {title[1]} port {title[2]}" if title else "a port"
        ports.append(PortCounters(who, {name: value for name, value in rows.items() if value is not None}))
    if not ports or not all(port.counters for port in ports):
        raise Unreadable("perfquery", "it shows no counters")
    return tuple(ports)


def read_queryerrors(text: str) -> tuple[PortCounters, ...]:
    """Read `ibqueryerrors`. Raises Unreadable."""
    ports = []
    for found in _ERRORS.finditer(text):
        if found["port"] != "ALL":
            values = {one["name"]: int(one["value"]) for one in _ERROR.finditer(found["counters"])}
            ports.append(PortCounters(f"{found['guid']} port {found['port']}", values))
    if not ports and "Summary" not in text and "Errors for" not in text:
        raise Unreadable("ibqueryerrors", "it has no summary")
    return tuple(ports)


def read_ibdiagnet(text: str) -> tuple[tuple[str, str], ...]:
    """Read `ibdiagnet`'s lines of warning and error: ("W" or "E", text). Raises Unreadable where cut."""
    found = [(line[1], line[4:].strip()) for line in text.splitlines() if re.match(r"^-[WE]- ", line)]
    if not re.search(r"^Summary", text, re.MULTILINE):
        raise Unreadable("ibdiagnet", "its summary is missing")
    return tuple(found)


def read_switch(text: str) -> tuple[SwitchPart, ...]:
    """Read `ibswinfo`. Raises Unreadable."""
    parts = []
    unit = "switch"
    for line in text.splitlines():
        label, sign, value = line.partition("|")
        if sign:
            if head := re.match(r"(PSU\d+|fan)", label):
                unit = head[1]
            parts.append(SwitchPart(unit, label.strip(), value.strip()))
    if not any(part.label.endswith("status") for part in parts):
        raise Unreadable("ibswinfo", "it shows no status")
    return tuple(parts)


def read_topology(text: str) -> tuple[tuple[str, ...], int]:
    """Read `ibnetdiscover` in either form: complaints about what did not answer, and links seen.

    Raises Unreadable where it shows no link.
    """
    complaints = tuple(
        line.strip()
        for line in text.splitlines()
        if re.match(r"^(?:src/|ibwarn|ibpanic|ibdebug)|.*(?:timed out|bad status)", line)
    )
    links = len(re.findall(r'^\[\d+\](?:\([0-9a-f]+\))?\s+"[SHR]-', text, re.MULTILINE))
    links += len(re.findall(r"^(?:CA|SW|RT)\s+\d+\s+\d+ 0x[0-9a-f]+ \d+x ", text, re.MULTILINE))
    if not links:
        raise Unreadable("ibnetdiscover", "it shows no link")
    return complaints, links


def _count(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
