"""Reads what load tests print: nccl-tests, perftest, gpu_burn."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_START = re.compile(r"^(?:# Collective test starting: (?P<name>\w+)|={3,} (?P<title>[\w -]+?) ={3,})\s*$")
_ROW = re.compile(
    r"^\s*(?P<size>\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+\s+(?P<time>[\d.e+]+)\s+(?P<alg>[\d.]+)\s+(?P<bus>[\d.]+)\s+(?P<wrong>\S+)"
    r"(?:\s+[\d.e+]+\s+[\d.]+\s+(?P<bus2>[\d.]+)\s+(?P<wrong2>\S+))?"
)
_RANK = re.compile(r"^#\s+Rank\s+\d+ .*? on\s+(?P<node>\S+) device\s+\d+ \[[^\]]*\] (?P<gpu>.*?)\s*$")
_FAILURE = re.compile(r"^\s*(?:(?P<node>\S+): )?Test (?P<what>NCCL|CUDA) failure \S+ '(?P<why>[^']*?)[ /]*'")
_PERF = re.compile(
    r"^\s*(?P<size>\d+)\s+(?P<iterations>\d+)\s+(?P<peak>[\d.]+)\s+(?P<average>[\d.]+)\s+(?P<rate>[\d.]+)\s*$",
    re.MULTILINE,
)
_BURN = re.compile(r"^\s*GPU (?P<gpu>\d+): (?P<state>OK|FAULTY)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective's run. Bandwidths in GB/s; `finished` when its own last line came."""

    name: str
    nodes: frozenset[str]
    ranks: int
    gpu: str
    bandwidths: tuple[float, ...]  # bus bandwidth, by rising size; in-place where it is higher
    wrong: int
    finished: bool
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """One row of perftest: MB/s or Gb/s as the tool was asked for."""

    size: int
    peak: float
    average: float
    unit: str


def read_collectives(text: str) -> tuple[Collective, ...]:
    """Read nccl-tests, any number of collectives in one log. Raises Unreadable."""
    runs = []
    name, lines = "collective", list[str]()
    started = False
    for line in text.splitlines():
        found = _START.match(line)
        if (
            not found
            and line.startswith("# nThread")
            and started
            and any("# nThread" in one for one in lines)
        ):
            found = re.match(r"()", line)
            runs.append(_collective(name, lines))
            lines = [line]
            continue
        if found:
            if started and lines:
                runs.append(_collective(name, lines))
            name, lines, started = found["name"] or found["title"], [], True
        else:
            started = started or line.startswith("# nThread")
            lines.append(line)
    if started or any(_FAILURE.match(line) for line in lines):
        runs.append(_collective(name, lines))
    runs = [run for run in runs if run.ranks or run.bandwidths or run.failures]
    if not runs:
        raise Unreadable("nccl-tests", f"it begins {text.strip()[:60]!r}")
    return tuple(runs)


def _collective(name: str, lines: list[str]) -> Collective:
    ranks = [found for line in lines if (found := _RANK.match(line))]
    rows = [found for line in lines if (found := _ROW.match(line))]
    failures = []
    for line in lines:
        if found := _FAILURE.match(line):
            failures.append(f"{found['node'] or 'a node'}: {found['why']}")
        elif re.search(r"Test failure ", line):
            failures.append(line.strip()[:100])
        elif (bad := re.match(r"# Out of bounds values : (\d+) (\w+)", line)) and bad[0][-4:] != "0 OK":
            failures.append(f"{bad[1]} values out of bounds")
    wrong = sum(int(row[key]) for row in rows for key in ("wrong", "wrong2") if (row[key] or "").isdecimal())
    return Collective(
        name=name,
        nodes=frozenset(rank["node"] for rank in ranks),
        ranks=len(ranks),
        gpu=ranks[0]["gpu"] if ranks else "",
        bandwidths=tuple(max(float(row["bus"]), float(row["bus2"] or 0)) for row in rows),
        wrong=wrong,
        finished=any(line.startswith("# Avg bus bandwidth") for line in lines),
        failures=tuple(failures),
    )


def read_transfers(text: str) -> tuple[Transfer, ...]:
    """Read ib_write_bw and its kin. Raises Unreadable where no result came."""
    unit = "Gb/s" if "Gb/sec" in text else "MB/s"
    found = tuple(
        Transfer(int(row["size"]), float(row["peak"]), float(row["average"]), unit)
        for row in _PERF.finditer(text)
    )
    if not found:
        raise Unreadable("perftest", "it gives no result")
    return found


def read_burn(text: str) -> dict[int, bool]:
    """Read gpu_burn's last words: GPU number to whether it is good. Raises Unreadable."""
    said = re.search(r"Tested (\d+) GPUs", text)
    states = {int(found["gpu"]): found["state"] == "OK" for found in _BURN.finditer(text)}
    if not said or len(states) != int(said[1]):
        raise Unreadable("gpu_burn", "it does not end with a result for each GPU")
    return states
