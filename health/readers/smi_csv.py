"""Reads `nvidia-smi --query-gpu=... --format=csv` into the fields of the long report."""

from __future__ import annotations

import csv
import re

from health.errors import Unreadable
from health.readers.smi import Gpu

_WHAT = "nvidia-smi --query-gpu"
_UNIT = re.compile(r" \[[\w/%]+\]$")
_REASONS = "clocks_event_reasons"
_ERRORS = {"dram": "dram_uncorrectable", "sram": "sram_uncorrectable", "total": "double_bit/total"}
# The query's names for what the report calls otherwise.
_PATHS = {
    "name": "product_name",
    "gpu_name": "product_name",
    "serial": "serial_number",
    "gpu_serial": "serial_number",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "remapped_rows.pending": "remapped_rows/pending",
    "remapped_rows.failure": "remapped_rows/remapping_failure_occurred",
    "remapped_rows.uncorrectable": "remapped_rows/uncorrectable_error",
    "remapped_rows.correctable": "remapped_rows/correctable_error",
    "retired_pages.pending": "retired_pages/pending_page_blacklist",
    "retired_pages.single_bit_ecc.count": "retired_pages/single_bit_ecc",
    "retired_pages.double_bit.count": "retired_pages/double_bit_ecc",
    "temperature.gpu": "temperature/gpu_current_temp",
    "temperature.gpu.tlimit": "temperature/gpu_t_limit_temp",
    "fabric.state": "fabric/state",
    "fabric.status": "fabric/status",
    "gpu_recovery_action": "gpu_recovery_action",
    **{
        f"ecc.errors.uncorrected.{span}.{kind}": f"ecc_errors/{span}/{path}"
        for span in ("volatile", "aggregate")
        for kind, path in _ERRORS.items()
    },
}
# The bits of ..._reasons.active that mean heat or power.
_BITS = {
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
_KNOWN = re.compile(r"^(?:index|count|uuid|gpu_uuid|timestamp|pid|process_name|[a-z_]+\.[a-z_.]+)$")


def is_csv(text: str) -> bool:
    """Say whether the first line is a heading of such a query."""
    heads = _heads(text)
    return len(heads) > 1 and any(head in _PATHS or _KNOWN.match(head) for head in heads)


def read_csv(text: str) -> tuple[Gpu, ...]:
    """Return the GPUs of a query. Raises Unreadable where a row has other columns than the heading."""
    heads = _heads(text)
    gpus: list[Gpu] = []
    for row in csv.reader(text.strip().splitlines()[1:], skipinitialspace=True):
        if len(row) != len(heads):
            raise Unreadable(_WHAT, f"row {', '.join(row)[:60]!r} has {len(row)} of {len(heads)} columns")
        cells = dict(zip(heads, (cell.strip() for cell in row), strict=True))
        fields = {path: value for head, value in cells.items() for path, value in _fields(head, value)}
        where = fields.get("bus_id") or cells.get("index") or cells.get("uuid") or str(len(gpus))
        gpus.append(Gpu(where.lower(), fields))
    if not gpus:
        raise Unreadable(_WHAT, "it shows no GPU")
    return tuple(gpus)


def _heads(text: str) -> list[str]:
    first = text.strip().split("\n", 1)[0]
    return [_UNIT.sub("", head.strip()) for head in first.split(",")]


def _fields(head: str, value: str) -> list[tuple[str, str]]:
    reasons = re.fullmatch(r"clocks_(?:throttle|event)_reasons\.(\w+)", head)
    if not reasons:
        path = _PATHS.get(head, head)
        # Alone among all, temperatures come without their unit.
        bare = path.startswith("temperature/") and value.isdecimal()
        return [(path, f"{value} C" if bare else value)]
    if reasons[1] != "active":
        return [(f"{_REASONS}/{reasons[1]}", value)]
    try:
        bits = int(value, 16)
    except ValueError:
        return [(f"{_REASONS}/active", value)]
    return [(f"{_REASONS}/{name}", "Active" if bits & bit else "Not Active") for bit, name in _BITS.items()]
