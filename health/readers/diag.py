"""Reads what DCGM prints: diagnostics as JSON or table, NVLink errors, health."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from health.errors import Unreadable
from health.readers.json_text import number, part, read_object

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_ROW = re.compile(r"^\|(?P<left>[^|]*)\|(?P<right>.*)\|\s*$")
_PER_GPU = re.compile(
    r"^(?:GPU ?(?P<gpu>\d+): (?P<state>\w+)|(?P<state2>\w+) - (?:All|GPUs?: (?P<gpus>[\d, ]+)))"
)
_STATES = {"pass": "pass", "fail": "fail", "warn": "warn", "skip": "skip", "not run": "skip"}


@dataclass(frozen=True, slots=True)
class DiagResult:
    """One test on one GPU, or on all of them. `said` are its warnings."""

    test: str
    gpu: str
    status: str  # pass, fail, warn, skip
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagReport:
    """A run of `dcgmi diag`. `error` says why it did not run."""

    results: tuple[DiagResult, ...]
    error: str | None = None


def read_diag(text: str) -> DiagReport:
    """Read `dcgmi diag` in either form. Raises Unreadable."""
    stripped = text.lstrip()
    if stripped.startswith("{"):
        return _from_json(text)
    return _from_table(text)


def _from_json(text: str) -> DiagReport:
    document = read_object("dcgmi diag", text)
    root = next((document[name] for name in _ROOTS if name in document), None)
    if not isinstance(root, dict):
        raise Unreadable("dcgmi diag", "its JSON has no diagnostic in it")
    if error := root.get("runtime_error"):
        return DiagReport((), str(error))
    serials = _serials(document)
    results = tuple(
        result
        for category in root.get("test_categories") or ()
        for test in part(category, "tests") or ()
        for result in _results(test, serials)
    )
    if not results:
        raise Unreadable("dcgmi diag", "it holds no result")
    return DiagReport(results)


def _serials(document: object) -> dict[str, str]:
    found = {}
    for group in part(document, "entity_groups") or ():
        for entity in part(group, "entities") or ():
            if serial := part(entity, "serial_num"):
                found[str(part(entity, "entity_id"))] = str(serial)
    return found


def _results(test: object, serials: dict[str, str]) -> Iterator[DiagResult]:
    name = str(part(test, "name"))
    for row in part(test, "results") or ():
        gpu = part(row, "entity_id")
        who = str(gpu) if gpu is not None else str(part(row, "gpu_ids") or "")
        if who in serials:
            who = f"{who} ({serials[who]})"
        warnings = part(row, "warnings") or ()
        said = tuple(str(part(one, "warning") or one) for one in warnings)
        yield DiagResult(name, who, _status(str(part(row, "status"))), said)


def _status(word: str) -> str:
    return _STATES.get(word.strip().lower(), "unknown")


def _from_table(text: str) -> DiagReport:
    if not re.search(r"\|\s*Diagnostic\s*\|\s*Result", text):
        message = " ".join(text.split())[:160]
        if re.search(r"(?i)error|unable|not (?:running|connect)", message):
            return DiagReport((), message)
        raise Unreadable("dcgmi diag", f"it begins {message[:60]!r}")
    results: list[DiagResult] = []
    test = said = ""
    for line in [*text.splitlines(), "| | |"]:
        row = _ROW.match(line)
        if not row or "----" in row["left"]:
            continue
        left, right = row["left"].strip(), row["right"][1:-1] if len(row["right"]) > 2 else ""
        if left and said:
            results[-1] = replace(results[-1], said=(*results[-1].said, " ".join(said.split())))
            said = ""
        if left.startswith("Warning") or (not left and said):
            # The table cuts its cells at a fixed width, in the middle of words.
            said += right
        elif left.startswith(("Info", "Diagnostic", "DCGM Version", "Driver Version", "GPU Device")):
            test = ""
        else:
            test = left or test
            results += _table_row(test, right.strip(), first=bool(left))
    if not results:
        raise Unreadable("dcgmi diag", "its table holds no result")
    if not text.rstrip().endswith("+"):
        raise Unreadable("dcgmi diag", "its table ends in the middle")
    return DiagReport(tuple(results))


def _table_row(test: str, cell: str, *, first: bool) -> list[DiagResult]:
    if not test:
        return []
    if found := _PER_GPU.match(cell):
        state = _status(found["state"] or found["state2"])
        return [DiagResult(test, (found["gpu"] or found["gpus"] or "all").strip(), state)]
    if first and _status(cell) != "unknown":
        return [DiagResult(test, "", _status(cell))]
    return []


def read_nvlink_errors(text: str) -> dict[tuple[str, int, str], int]:
    """Read `dcgmi nvlink -e -j`: (GPU, link, counter) to its count. Raises Unreadable."""
    document = read_object("dcgmi nvlink -e", text)
    body, header = document.get("body"), document.get("header")
    if not isinstance(body, dict) or not body:
        raise Unreadable("dcgmi nvlink -e", "it has no body")
    gpu = str(header[-1]) if isinstance(header, list) and header else "GPU"
    counters = {}
    for link, entry in body.items():
        found = re.fullmatch(r"Link (\d+)", link)
        for name, value in (part(entry, "children") or {}).items():
            count = number(part(value, "value"))
            if found and count is not None:
                counters[gpu, int(found[1]), str(name)] = int(count)
    if not counters:
        raise Unreadable("dcgmi nvlink -e", "it counts nothing")
    return counters
