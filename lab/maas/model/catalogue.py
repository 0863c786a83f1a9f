"""The scripts that MAAS can run on machines: the built-in ones and those uploaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import yaml

from lab.maas.model.results import ScriptType

_BUILT_IN = Path(__file__).with_name("scripts.yaml")


class HardwareType(IntEnum):
    """Which part of a machine a script looks at."""

    NODE = 0
    CPU = 1
    MEMORY = 2
    STORAGE = 3
    NETWORK = 4
    GPU = 5

    @property
    def label(self) -> str:
        """The word that MAAS shows."""
        return self.name if self in {HardwareType.CPU, HardwareType.GPU} else self.name.capitalize()


@dataclass(frozen=True, slots=True)
class Script:
    """One script; the timeout is written h:mm:ss, 0:00:00 for none."""

    id: int
    name: str
    title: str
    created: float
    description: str = ""
    type: ScriptType = ScriptType.TESTING
    hardware: HardwareType = HardwareType.NODE
    parallel: int = 0
    tags: tuple[str, ...] = ()
    timeout: str = "0:00:00"
    destructive: bool = False
    network: bool = False
    built_in: bool = False
    apt: tuple[str, ...] = ()
    parameters: dict[str, dict[str, object]] = field(default_factory=dict)
    results: dict[str, object] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)

    @property
    def per_disk(self) -> bool:
        """Say whether the script runs once for every disk."""
        return any(one.get("type") == "storage" for one in self.parameters.values())


def built_in_scripts(now: float) -> list[Script]:
    """Read the scripts that a fresh MAAS has."""
    entries: list[dict[str, Any]] = yaml.safe_load(_BUILT_IN.read_text(encoding="utf-8"))
    return [_script(number, entry, now) for number, entry in enumerate(entries, start=1)]


def _script(number: int, entry: dict[str, Any], now: float) -> Script:
    return Script(
        id=number,
        name=entry["name"],
        title=entry["title"],
        created=now,
        description=entry["title"],
        type=ScriptType(entry.get("type", 0)),
        hardware=HardwareType(entry.get("hardware", 0)),
        parallel=entry.get("parallel", 0),
        tags=tuple(entry["tags"]),
        timeout=entry["timeout"],
        destructive=entry.get("destructive", False),
        network=entry.get("network", False),
        built_in=True,
        apt=tuple(entry.get("apt", ())),
        parameters=entry.get("parameters", {}),
        results=entry.get("results", {}),
    )
