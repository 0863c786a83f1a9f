"""What a check is: an id, what it needs from the node, and a pure judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from health.evidence import Evidence
from health.outcome import Outcome
from inventory.model import Profile


class Level(StrEnum):
    """How deep the gate looks. Each level holds all checks of those before it."""

    QUICK = "quick"  # passive, seconds
    FULL = "full"  # active tests on one node, minutes
    BURNIN = "burnin"  # long, in pairs and over the fabric

    def holds(self, other: Level) -> bool:
        """Say whether a gate of this level runs checks of the level `other`."""
        return _DEPTH[other] <= _DEPTH[self]


_DEPTH = {level: depth for depth, level in enumerate(Level)}


@dataclass(frozen=True, slots=True)
class Collect:
    """One command or file to bring back. A file may be a pattern: all that match come, with paths.

    A command with `each` runs once for every path that the pattern matches, "{}" standing for it and
    "{name}" for its last part. A word
    "${name}" is that limit of the profile; where it is not stated the item is not collected. `after_s`
    starts it so much later than the others, for a second reading. A word "@NAME" stands for the script of
    that name under health/active. `alone` runs it after all others, with nothing beside it.
    """

    id: str
    argv: tuple[str, ...] = ()
    file: str = ""
    timeout_s: float = 10.0
    needs_root: bool = False
    limit_bytes: int = 262_144
    each: str = ""
    after_s: float = 0.0
    alone: bool = False

    @property
    def source(self) -> str:
        """Name what is run or read, as evidence names it."""
        return " ".join(self.argv) or self.file

    def __post_init__(self) -> None:
        if bool(self.argv) == bool(self.file):
            raise ValueError(f"item {self.id} needs a command or a file, not both")


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a node. `gates` False: it reports, and neither admits nor refuses."""

    id: str
    level: Level
    collects: tuple[Collect, ...]
    judge: Callable[[Evidence, Profile], Outcome]
    gates: bool = True
