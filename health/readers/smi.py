"""Reads `nvidia-smi -q`, as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from health.errors import Unreadable

_WHAT = "nvidia-smi -q"
_GPU_HEADING = re.compile(r"^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
_LINE = re.compile(r"^(?P<indent> *)(?P<label>\S.*?)\s*(?: : ?(?P<value>.*))?$")
# What the tool writes where it asked the GPU and got no answer; "N/A" is an answer.
BROKEN_VALUES = ("ERR!", "Unknown Error", "[Unknown Error]", "GPU is lost", "[GPU is lost]")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: its address in the form 0000:53:00.0, and its fields by path, "ecc_mode/current" for one."""

    address: str
    fields: Mapping[str, str]

    def value(self, *paths: str) -> str | None:
        """Return the first of `paths` that is there and says something; None where none does."""
        for path in paths:
            value = self.fields.get(path)
            if value not in (None, "", "N/A", "[N/A]", "Not Supported", "[Not Supported]"):
                return value
        return None

    def number(self, *paths: str) -> float | None:
        """Return the number that a field begins with, without its unit."""
        value = self.value(*paths)
        match = re.match(r"-?\d+(?:\.\d+)?", value) if value else None
        return float(match[0]) if match else None

    @property
    def serial(self) -> str:
        """Name this GPU for a human: its serial where it has one, else its address."""
        return self.value("serial_number") or self.address

    @property
    def broken(self) -> tuple[str, ...]:
        """List the fields that the GPU did not answer."""
        return tuple(path for path, value in self.fields.items() if value in BROKEN_VALUES)


@dataclass(frozen=True, slots=True)
class SmiReport:
    """All that one `nvidia-smi -q` said. `attached` is its own count of GPUs."""

    driver: str
    cuda: str
    attached: int
    gpus: tuple[Gpu, ...]


def read_smi(text: str) -> SmiReport:
    """Read the text form. Raises Unreadable where it is cut or no such report at all."""
    head, blocks = _blocks(text)
    top = dict(_paths(head))
    if "attached_gpus" not in top or "driver_version" not in top:
        raise Unreadable(_WHAT, _first_line(text))
    attached = top["attached_gpus"]
    if not attached.isdigit():
        raise Unreadable(_WHAT, f"Attached GPUs is {attached!r}")
    gpus = tuple(Gpu(short_address(address), dict(_paths(lines))) for address, lines in blocks)
    if len(gpus) != int(attached):
        raise Unreadable(_WHAT, f"it says {attached} attached GPUs and describes {len(gpus)}")
    if len({gpu.address for gpu in gpus}) != len(gpus):
        raise Unreadable(_WHAT, "it describes one GPU twice")
    return SmiReport(top["driver_version"], top.get("cuda_version", ""), int(attached), gpus)


def short_address(address: str) -> str:
    """Bring a PCI address to the kernel's form: 00000000:53:00.0 becomes 0000:53:00.0."""
    domain, _, rest = address.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _blocks(text: str) -> tuple[list[str], list[tuple[str, list[str]]]]:
    head: list[str] = []
    blocks: list[tuple[str, list[str]]] = []
    lines = head
    for line in text.splitlines():
        if heading := _GPU_HEADING.match(line):
            lines = []
            blocks.append((heading[1], lines))
        else:
            lines.append(line)
    return head, blocks


def _paths(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Give each "label : value" with the labels that it is indented under."""
    above: list[tuple[int, str]] = []
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        indent = len(match["indent"])
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, _name(match["label"])))
        if match["value"] is not None:
            yield "/".join(name for _, name in above), match["value"].strip()


def _name(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


def _first_line(text: str) -> str:
    lines = text.split("\n", 1)
    return f"it begins {lines[0].strip()[:80]!r}" if text.strip() else "it is empty"
