"""Reads Ethernet: `ip -j link`, link speeds, ethtool, bonding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from health.errors import Unreadable
from health.readers.json_text import part, read_json


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface. `speed` in Gb/s, None where unknown; `bond` names what it is a member of."""

    name: str
    flags: frozenset[str]
    state: str
    mtu: int
    bond: str
    speed: float | None = None

    @property
    def is_bond(self) -> bool:
        """Say whether others are its members."""
        return "MASTER" in self.flags

    @property
    def carrier(self) -> bool:
        """Say whether there is light or signal on it."""
        return "LOWER_UP" in self.flags


def read_links(text: str) -> tuple[Interface, ...]:
    """Read `ip -j link` or `ip -j addr`, alone or beside a map of speeds. Raises Unreadable."""
    document = read_json("ip -j link", text)
    rows: object = document
    speeds: object = {}
    if isinstance(document, dict):
        rows, speeds = document.get("intf_status"), document.get("link_speed") or {}
    if not isinstance(rows, list) or not rows:
        raise Unreadable("ip -j link", "it lists no interface")
    return tuple(_interface(row, speeds) for row in rows if isinstance(row, dict) and row)


_TEXT = re.compile(
    r"^\d+: (?P<name>[^:@\s]+)(?:@\S+)?: <(?P<flags>[^>]*)> mtu (?P<mtu>\d+)(?P<rest>.*)$", re.MULTILINE
)


def read_links_text(text: str) -> tuple[Interface, ...]:
    """Read `ip link` or `ip addr` as it is printed for humans. Raises Unreadable."""
    found = []
    for row in _TEXT.finditer(text):
        words = row["rest"].split()
        after = {word: value for word, value in pairwise(words) if word in ("master", "state")}
        flags = frozenset(row["flags"].split(","))
        found.append(
            Interface(row["name"], flags, after.get("state", ""), int(row["mtu"]), after.get("master", ""))
        )
    if not found:
        raise Unreadable("ip link", "it lists no interface")
    return tuple(found)


def _interface(row: dict[str, object], speeds: object) -> Interface:
    name, flags, mtu = row.get("ifname"), row.get("flags"), row.get("mtu")
    if not isinstance(name, str) or not isinstance(flags, list):
        raise Unreadable("ip -j link", "a row has no name or flags")
    speed = str(part(speeds, name) or "")
    return Interface(
        name,
        frozenset(map(str, flags)),
        str(row.get("operstate", "")),
        mtu if isinstance(mtu, int) else 0,
        str(row.get("master") or row.get("main") or ""),
        int(speed) / 1000 if speed.isdecimal() else None,
    )


def read_ethtool(text: str) -> tuple[Interface, ...]:
    """Read `ethtool INTERFACE`. Raises Unreadable."""
    found = []
    for block in re.split(r"^Settings for ", text, flags=re.MULTILINE)[1:]:
        name = block.split(":", 1)[0].strip()
        speed = re.search(r"^\s*Speed: (\d+)Mb/s", block, re.MULTILINE)
        link = re.search(r"^\s*Link detected: (yes|no)", block, re.MULTILINE)
        if not link:
            raise Unreadable("ethtool", f"{name} does not tell whether its link is up")
        flags = frozenset({"UP", "LOWER_UP"} if link[1] == "yes" else {"UP"})
        state = "UP" if link[1] == "yes" else "DOWN"
        found.append(Interface(name, flags, state, 0, "", int(speed[1]) / 1000 if speed else None))
    if not found:
        raise Unreadable("ethtool", "it describes no interface")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class BondMember:
    """One member as /proc/net/bonding tells of it."""

    bond: str
    name: str
    up: bool
    speed: float | None
    failures: int


def read_bonding(text: str) -> tuple[BondMember, ...]:
    """Read /proc/net/bonding/NAME. Raises Unreadable."""
    bond = re.search(r"==> \S*/(\S+) <==", text)
    members = []
    for block in re.split(r"^Slave Interface: ", text, flags=re.MULTILINE)[1:]:
        name = block.split("\n", 1)[0].strip()
        state = re.search(r"^MII Status: (\w+)", block, re.MULTILINE)
        speed = re.search(r"^Speed: (\d+) Mbps", block, re.MULTILINE)
        failures = re.search(r"^Link Failure Count: (\d+)", block, re.MULTILINE)
        if not state:
            raise Unreadable("bonding", f"{name} has no state")
        members.append(
            BondMember(
                bond[1] if bond else "bond",
                name,
                state[1] == "up",
                int(speed[1]) / 1000 if speed else None,
                int(failures[1]) if failures else 0,
            )
        )
    if "Bonding Mode:" not in text:
        raise Unreadable("bonding", "it is no bond's file")
    return tuple(members)
