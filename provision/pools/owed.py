"""Nodes whose pool MAAS or Slurm has not been shown yet: kept in the state folder until it has been."""

from __future__ import annotations

import fcntl
from collections.abc import Iterable
from pathlib import Path


def load(state: Path) -> frozenset[str]:
    """Return the names of the nodes whose pool has still to be shown."""
    try:
        return frozenset((state / "owed").read_text(encoding="utf-8").split())
    except FileNotFoundError:
        return frozenset()


def settle(state: Path, *, shown: Iterable[str], failed: Iterable[str]) -> None:
    """Note which nodes were shown just now, and which not. Commands may do so at the same moment.

    Best effort: where the state folder cannot be written, `pool.mirror` remains.
    """
    before, failing, done = load(state), set(failed), set(shown)
    if not failing and not before & done:
        return
    try:
        with (state / "owed").open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            names = (set(file.read().split()) - done) | failing
            file.truncate(0)
            file.write("\n".join(sorted(names)))
    except OSError:
        return
