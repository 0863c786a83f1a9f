"""Reads what nvidia-smi says instead of a report, and its small tables."""

from __future__ import annotations

import re
from dataclasses import dataclass

from health.errors import Unreadable

_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU|gpu) ?(?P<gpu>[0-9A-Fa-f]+:[0-9A-Fa-f:.]+): ?"
    r"(?P<why>[^.\n]*)"
)
_MESSAGES = (
    ("lost", re.compile(r"GPU is lost|fallen off the bus")),
    ("mismatch", re.compile(r"Driver/library version mismatch")),
    ("no driver", re.compile(r"couldn't communicate with the NVIDIA driver|NVIDIA driver is not loaded")),
    ("no GPU", re.compile(r"No devices were found")),
    ("nvml", re.compile(r"Failed to initialize NVML: .*|NVML: .*(?:[Ee]rror|Unable).*")),
)
_LINK_GPU = re.compile(r"^GPU (?P<index>\d+): (?P<name>.*?) \(UUID: (?P<uuid>[^)]+)\)\s*$")
_LINK = re.compile(r"^\s*Link (?P<n>\d+): (?P<state>.*?)\s*$")
_COUNTER = re.compile(r"^\s*Link (?P<n>\d+): (?P<what>.*?)(?: Errors?)?: (?P<count>\d+|N/A)\s*$")
_SPEED = re.compile(r"^(?P<speed>\d+(?:\.\d+)?) GB/s$")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class SmiMessage:
    """Why there is no report: a kind of trouble, the GPU it names or None, and its own words."""

    kind: str
    gpu: str | None
    text: str


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """One GPU's NVLinks: link number to GB/s, None for a link that is not active."""

    index: int
    uuid: str
    name: str
    links: dict[int, float | None]
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """One GPU of the plain `nvidia-smi` table."""

    address: str
    cells: tuple[str, ...]
    uncorrected: str


def read_messages(text: str) -> tuple[SmiMessage, ...]:
    """Return the troubles that the output names; the tool wraps its sentences at column 80."""
    flat = " ".join(text.split())
    found = [
        SmiMessage("lost", hit["gpu"].lower(), f"{hit['why'].strip()}")
        for hit in _HANDLE.finditer(re.sub(r"\s+", " ", text))
    ]
    for kind, pattern in _MESSAGES:
        hit = pattern.search(flat)
        if hit and not (found and kind == "lost"):
            found.append(SmiMessage(kind, None, hit[0][:160]))
    return tuple(found)


def read_links(text: str) -> tuple[GpuLinks, ...]:
    """Read `nvidia-smi nvlink -s`. Raises Unreadable where a line is none of its own."""
    gpus: list[GpuLinks] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if heading := _LINK_GPU.match(line):
            gpus.append(GpuLinks(int(heading["index"]), heading["uuid"], heading["name"], {}))
        elif (link := _LINK.match(line)) and gpus:
            speed = _SPEED.match(link["state"])
            if not speed and link["state"] not in ("<inactive>", "inactive"):
                raise Unreadable("nvidia-smi nvlink -s", f"line {line.strip()[:60]!r}")
            gpus[-1].links[int(link["n"])] = float(speed["speed"]) if speed else None
        elif gpus and "NVML" in line:
            last = gpus.pop()
            gpus.append(GpuLinks(last.index, last.uuid, last.name, last.links, line.strip()))
        else:
            raise Unreadable("nvidia-smi nvlink -s", f"line {line.strip()[:60]!r}")
    if not gpus:
        raise Unreadable("nvidia-smi nvlink -s", "it names no GPU")
    return tuple(gpus)


def read_link_counters(text: str) -> dict[tuple[str, int, str], int]:
    """Read `nvidia-smi nvlink -e`: (GPU UUID, link, counter) to its count. Raises Unreadable."""
    counters: dict[tuple[str, int, str], int] = {}
    uuid = None
    seen: set[str] = set()
    for line in text.splitlines():
        if heading := _LINK_GPU.match(line):
            uuid = heading["uuid"]
            if uuid in seen:
                raise Unreadable("nvidia-smi nvlink -e", f"it names {uuid} twice")
            seen.add(uuid)
        elif (found := _COUNTER.match(line)) and uuid:
            if found["count"] != "N/A":
                counters[uuid, int(found["n"]), found["what"].strip()] = int(found["count"])
        elif line.strip() and "inactive" not in line:
            raise Unreadable("nvidia-smi nvlink -e", f"line {line.strip()[:60]!r}")
    if uuid is None:
        raise Unreadable("nvidia-smi nvlink -e", "it names no GPU")
    return counters


def read_table(text: str) -> tuple[TableRow, ...]:
    """Read the plain table's GPUs. Raises Unreadable where it shows none."""
    rows: list[TableRow] = []
    address, first = None, ""
    for line in text.splitlines():
        cells = line.split("|")
        found = re.search(r"([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)", line)
        if found and len(cells) >= 4:
            address, first = found[1].lower(), line
        elif address and len(cells) >= 4:
            uncorrected = first.split("|")[-2].strip()
            rows.append(TableRow(address, tuple(first.split("|") + cells), uncorrected))
            address = None
    if not rows:
        raise Unreadable("nvidia-smi", "its table shows no GPU")
    return tuple(rows)


def read_topology(text: str) -> dict[tuple[str, str], str]:
    """Read `nvidia-smi topo -m`: pairs of GPUs to how they are joined. Raises Unreadable."""
    lines = [_ANSI.sub("", line) for line in text.splitlines() if line.strip()]
    heads = [re.split(r"\t+", line.strip()) for line in lines[:1]]
    names = [name.strip() for name in heads[0]] if heads else []
    gpus = [name for name in names if re.fullmatch(r"GPU\d+", name)]
    joins: dict[tuple[str, str], str] = {}
    for line in lines[1:]:
        cells = [cell.strip() for cell in line.split("\t")]
        if cells[0] in gpus:
            for other, join in zip(gpus, cells[1:], strict=False):
                if join not in ("X", ""):
                    joins[cells[0], other] = join
    if not gpus or ({pair[0] for pair in joins} != set(gpus) and len(gpus) > 1):
        raise Unreadable("nvidia-smi topo -m", "its matrix is not whole")
    return joins
