"""Versioned facts: what error codes and log lines mean. Data in files beside this one, read once."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from health.outcome import Action, Status

_FOLDER = Path(__file__).parent


class Gate(StrEnum):
    """What an error code does to a node."""

    BLOCK = "block"  # one event keeps the node out
    COUNT = "count"  # shown; keeps the node out when it repeats
    NOTE = "note"  # of no consequence to the hardware
    FOLLOW = "follow"  # means what another code says


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the Xid and SXid catalogue."""

    kind: str  # "xid" or "sxid"
    code: int
    meaning: str
    gate: Gate
    action: Action
    on_repeat: Action
    rule: str  # how this code's text changes its gate; "" where it does not


@dataclass(frozen=True, slots=True)
class LineRule:
    """One kind of log line that a healthy node never prints."""

    id: str
    words: tuple[str, ...]
    match: re.Pattern[str]
    status: Status
    component: str
    identity: str
    message: str
    action: Action
    at_least: int = 1
    unless: re.Pattern[str] | None = None


@cache
def codes() -> Mapping[tuple[str, int], Code]:
    """Return the Xid and SXid catalogue."""
    with (_FOLDER / "xid.csv").open(encoding="utf-8", newline="") as source:
        rows = [
            Code(
                kind=row["kind"],
                code=int(row["code"]),
                meaning=row["meaning"],
                gate=Gate(row["gate"]),
                action=Action(row["action"]),
                on_repeat=Action(row["on_repeat"]),
                rule=row["rule"],
            )
            for row in csv.DictReader(source)
        ]
    return {(row.kind, row.code): row for row in rows}


@cache
def line_rules(name: str) -> tuple[LineRule, ...]:
    """Return the rules of the file `name`.toml."""
    with (_FOLDER / f"{name}.toml").open("rb") as source:
        rules = tomllib.load(source)["rule"]
    return tuple(
        LineRule(
            id=rule["id"],
            words=tuple(rule["words"]),
            match=re.compile(rule["match"]),
            status=Status(rule["status"]),
            component=rule["component"],
            identity=rule["identity"],
            message=rule["message"],
            action=Action(rule["action"]),
            at_least=rule.get("at_least", 1),
            unless=re.compile(rule["unless"]) if "unless" in rule else None,
        )
        for rule in rules
    )
