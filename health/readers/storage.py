"""Reads the state of arrays and pools: zpool status, /proc/mdstat, RAID controllers' listings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_VDEV = re.compile(
    r"^\s+(?P<name>\S+)\s+(?P<state>[A-Z]+)(?:\s+(?P<read>[\d.]+[KMGT]?)\s+(?P<write>[\d.]+[KMGT]?)"
    r"\s+(?P<cksum>[\d.]+[KMGT]?))?(?P<note>.*)$"
)
_ARRAY = re.compile(r"^(?P<name>md\S*) : (?P<state>active|inactive)(?P<rest>.*)$", re.MULTILINE)
_COUNTS = re.compile(r"\[(?P<total>\d+)/(?P<active>\d+)\] \[(?P<letters>[U_]+)\]")
_PROGRESS = re.compile(r"(?P<what>recovery|resync|reshape|check)\s*=\s*(?P<percent>[\d.]+%|DELAYED|PENDING)")
_STATUS = re.compile(
    r"^\s*(?P<label>[A-Za-z /]*?(?:Status|State|Condition|Health))\s*[:=]\s*(?P<value>.+?)\s*$"
)

# A row of storcli's or perccli's tables: a virtual drive "0/0 RAID1 Optl", a drive "252:0 7 Onln".
_STORCLI = re.compile(r"^\s*(?P<name>\d+/\d+\s+RAID\S*|\d*:\d+\s+\d+)\s+(?P<state>[A-Z]\w+)\s")


@dataclass(frozen=True, slots=True)
class Device:
    """One row of a pool's tree. Counts are errors."""

    name: str
    state: str
    read: float
    write: float
    checksum: float
    note: str


@dataclass(frozen=True, slots=True)
class ZPool:
    """One ZFS pool. `scan` and `errors` are the tool's own lines."""

    name: str
    state: str
    devices: tuple[Device, ...]
    scan: str
    errors: str


@dataclass(frozen=True, slots=True)
class Array:
    """One md array; `missing` of its members are not in it, `failed` are marked as such."""

    name: str
    active: bool
    missing: int
    failed: tuple[str, ...]
    progress: str | None


@dataclass(frozen=True, slots=True)
class StatusLine:
    """One "... Status: value" of a RAID controller's listing, and what it is about."""

    about: str
    label: str
    value: str


def read_zpool(text: str) -> tuple[ZPool, ...]:
    """Read `zpool status`. Raises Unreadable where a pool lacks its state, tree or last line."""
    if text.strip() == "no pools available":
        return ()
    pools = []
    for block in re.split(r"^\s*pool: ", text, flags=re.MULTILINE)[1:]:
        name = block.split("\n", 1)[0].strip()
        state = re.search(r"^\s*state: (\S+)", block, re.MULTILINE)
        errors = re.search(r"^\s*errors: (.*)", block, re.MULTILINE)
        scan = re.search(r"^\s*(?:scan|scrub): (.*)", block, re.MULTILINE)
        tree = block.partition("config:")[2].partition("errors:")[0]
        devices = tuple(_device(row) for line in tree.splitlines() if (row := _VDEV.match(line)))
        devices = tuple(device for device in devices if device.state != "STATE")
        if not state or not devices or not errors:
            raise Unreadable("zpool status", f"pool {name} is not described whole")
        pools.append(ZPool(name, state[1], devices, scan[1] if scan else "", errors[1]))
    if not pools:
        raise Unreadable("zpool status", "it names no pool")
    return tuple(pools)


def _device(row: re.Match[str]) -> Device:
    counts = [_count(row[name]) for name in ("read", "write", "cksum")]
    return Device(row["name"], row["state"], counts[0], counts[1], counts[2], row["note"].strip())


def _count(text: str | None) -> float:
    if not text:
        return 0.0
    factor = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1.0)
    return float(text.rstrip("KMGT")) * factor


def read_mdstat(text: str) -> tuple[Array, ...]:
    """Read /proc/mdstat. Raises Unreadable."""
    if not text.startswith("Personalities") or text.count("unused devices:") != 1:
        raise Unreadable("/proc/mdstat", "it is not whole")
    arrays: list[Array] = []
    for block in re.split(r"\n(?=md)", text)[1:]:
        found = _ARRAY.match(block)
        if not found:
            raise Unreadable("/proc/mdstat", f"line {block[:60]!r}")
        counts = _COUNTS.search(block)
        progress = _PROGRESS.search(block)
        redundant = re.match(r" (?:\(\S+\) )?raid(?!0 )\d+ ", found["rest"])
        members = re.search(r"\w\[\d+\]", found["rest"])
        if found["state"] == "active" and ((redundant and not counts) or not members):
            raise Unreadable("/proc/mdstat", f"{found['name']} does not show its members")
        missing = counts["letters"].count("_") if counts else 0
        if counts:
            missing = max(missing, int(counts["total"]) - int(counts["active"]))
        failed = tuple(re.findall(r"(\S+)\[\d+\]\(F\)", found["rest"]))
        arrays.append(
            Array(
                found["name"],
                found["state"] == "active",
                missing,
                failed,
                f"{progress['what']} {progress['percent']}" if progress else None,
            )
        )
    return tuple(arrays)


def read_statuses(text: str) -> tuple[StatusLine, ...]:
    """Read the status lines of ssacli, perccli, storcli or omreport. Raises Unreadable for none."""
    found = []
    about = "controller"
    for line in text.splitlines():
        if status := _STATUS.match(line):
            found.append(StatusLine(about, status["label"].strip(), status["value"]))
        elif row := _STORCLI.match(line):
            found.append(StatusLine(row["name"], "State", row["state"]))
        elif line.strip() and ":" not in line and "=" not in line:
            about = line.strip()[:60]
    if not found:
        raise Unreadable("RAID controller listing", "it has no status")
    return tuple(found)
