"""Answers on stdout: tables without borders, JSON with a schema, YAML, node sets."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import yaml

from inventory.nodeset import fold
from provision.errors import BadRequest

FORMATS = ("table", "wide", "json", "yaml", "nodeset")
SCHEMA = 1
Row = Mapping[str, object]


def check_format(output: str) -> None:
    """Raise BadRequest for an output form that there is not."""
    if output not in FORMATS:
        raise BadRequest("--output", f"{output} is no output form", f"one of {', '.join(FORMATS)}")


def answer(kind: str, rows: Sequence[Row], columns: Sequence[str], output: str) -> None:
    """Print `rows`. Columns are keys; `wide` and machine forms show every key of the rows."""
    check_format(output)
    if output == "json":
        _write(json.dumps({"schema": SCHEMA, kind: list(rows)}, indent=1, default=_plain))
    elif output == "yaml":
        plain = json.loads(json.dumps({"schema": SCHEMA, kind: list(rows)}, default=_plain))
        _write(yaml.safe_dump(plain, sort_keys=False).rstrip())
    elif output == "nodeset":
        _write(fold(str(row["node"]) for row in rows if "node" in row))
    else:
        keys = list(columns)
        if output == "wide":
            keys += [key for key in (rows[0] if rows else ()) if key not in keys]
        _write(table(rows, keys))


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return rows as aligned text under upper-case heads; numbers to the right."""
    heads = [column.upper().replace("_", " ") for column in columns]
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[place]) for line in [heads, *cells]) for place in range(len(columns))]
    right = [bool(rows) and all(isinstance(row.get(column), int) for row in rows) for column in columns]
    lines = []
    for line in [heads, *cells]:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True))
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def age(moment: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago, in the largest unit that says enough: 12s, 4m, 3h, 2d."""
    if moment is None:
        return "-"
    seconds = max(0, int(((now or datetime.now(UTC)) - moment).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit == "m" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def duration(seconds: float) -> str:
    """Return seconds as h:mm:ss, or m:ss under an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return str(value)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return str(value)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
