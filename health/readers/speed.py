"""Reads what programs that measure speed print: nvbandwidth, fio, sysbench, and our own scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from health.errors import Unreadable
from health.readers.json_text import number, only, part, read_json, read_object

_DEVICE = re.compile(r"^Device (?P<index>\d+): (?P<name>.*) \((?P<address>[0-9A-Fa-f:]+)\)\s*$", re.MULTILINE)
_RUN = re.compile(r"^Running (?P<name>\w+)\.\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Product:
    """One GPU's matrix products of one kind. `wrong` counts rows that were not what they must be."""

    gpu: int
    kind: str
    rounds: int
    wrong: int
    tflops: float


@dataclass(frozen=True, slots=True)
class Copies:
    """What nvbandwidth measured: addresses of the GPUs by index, and GB/s by (test, row, column)."""

    gpus: Mapping[int, str]
    speeds: Mapping[tuple[str, int, int], float]


def read_products(text: str) -> tuple[Product, ...]:
    """Read gemm.py. Raises Unreadable unless every GPU ended with every kind."""
    lines = [read_object("gemm.py", line) for line in text.splitlines() if line.strip()]
    if not lines or lines[-1].get("end") is not True:
        raise Unreadable("gemm.py", "its last line is missing")
    failed = next((line for line in lines if "error" in line), None)
    if failed:
        raise Unreadable("gemm.py", f"GPU {failed.get('gpu')}: {str(failed['error'])[:120]}")
    products = tuple(_product(line) for line in lines[:-1])
    done = {(one.gpu, one.kind) for one in products}
    gpus, kinds = {one.gpu for one in products}, {one.kind for one in products}
    whole = len(done) == len(products) == len(gpus) * len(kinds) and len(kinds) == 2
    if not whole or number(lines[-1].get("gpus")) != len(gpus):
        raise Unreadable("gemm.py", "a result is missing")
    return products


def _product(line: Mapping[str, object]) -> Product:
    values = [number(line.get(name)) for name in ("gpu", "rounds", "wrong", "tflops")]
    gpu, rounds, wrong, tflops = (-1.0 if value is None else value for value in values)
    if min(gpu, rounds, wrong, tflops) < 0 or not isinstance(line.get("kind"), str) or rounds < 1:
        raise Unreadable("gemm.py", f"line {json.dumps(line)[:80]}")
    return Product(int(gpu), str(line["kind"]), int(rounds), int(wrong), tflops)


def read_copies(text: str) -> Copies:
    """Read nvbandwidth's tables. Raises Unreadable where one does not end with its sum."""
    gpus = {int(found["index"]): found["address"].lower() for found in _DEVICE.finditer(text)}
    pieces = _RUN.split(text)
    speeds: dict[tuple[str, int, int], float] = {}
    if len(set(pieces[1::2])) != len(pieces[1::2]):
        raise Unreadable("nvbandwidth", "a test comes twice")
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if not re.search(rf"^SUM {name} [\d.]+\s*$", body, re.MULTILINE):
            raise Unreadable("nvbandwidth", f"{name} did not end with its sum")
        speeds.update(_table(name, body))
    if not gpus or not speeds:
        raise Unreadable("nvbandwidth", f"it begins {text.strip()[:60]!r}")
    return Copies(gpus, speeds)


def _table(name: str, body: str) -> dict[tuple[str, int, int], float]:
    lines = body.splitlines()
    heads = next((line.split() for line in lines if re.fullmatch(r"\s*\d+(?:\s+\d+)*\s*", line)), [])
    cells: dict[tuple[str, int, int], float] = {}
    for line in lines:
        words = line.split()
        if len(words) != len(heads) + 1 or not words[0].isdecimal() or not heads:
            continue
        for head, word in zip(heads, words[1:], strict=True):
            if word != "N/A":
                value = number(word)
                if value is None:
                    raise Unreadable("nvbandwidth", f"{name} shows {word[:20]!r}")
                cells[name, int(words[0]), int(head)] = value
    if not cells:
        raise Unreadable("nvbandwidth", f"{name} shows no value")
    return cells


def read_fio(text: str) -> float:
    """Read fio's JSON of one job that reads: bytes a second. Raises Unreadable, also where the job failed."""
    document = read_json("fio", text)
    job = part(document, "jobs", 0)
    error, speed = number(part(job, "error")), number(part(job, "read", "bw_bytes"))
    if error != 0 or not speed:
        raise Unreadable("fio", f"its job ended with error {error}")
    return speed


def read_sysbench_memory(text: str) -> float:
    """Read `sysbench memory run`: MiB a second. Raises Unreadable."""
    if not text.startswith("sysbench "):
        raise Unreadable("sysbench memory", f"it begins {text.strip()[:60]!r}")
    return float(only("sysbench memory", r"^[\d.]+ MiB transferred \(([\d.]+) MiB/sec\)\s*$", text)[1])


def read_stragglers(text: str) -> Mapping[int, float]:
    """Read stragglers.py: CPU to seconds. Raises Unreadable where one gave no time."""
    document = read_object("stragglers.py", text)
    seconds = document.get("seconds")
    found = {
        int(cpu): float(value)
        for cpu, value in (seconds.items() if isinstance(seconds, dict) else ())
        if cpu.isdecimal() and isinstance(value, int | float) and value > 0
    }
    if not found or number(document.get("cpus")) != len(found):
        raise Unreadable("stragglers.py", "a CPU gave no time")
    return found
