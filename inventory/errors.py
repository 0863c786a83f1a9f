"""What can be wrong with what we know: site files, node sets, secrets, the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class InventoryError(Exception):
    """Base of everything that this package raises on purpose."""


class SiteFileError(InventoryError):
    """A site file does not say what a site file must say. `line` is None where no line is to blame."""

    def __init__(self, path: Path, line: int | None, what: str) -> None:
        super().__init__(path, line, what)
        self.path = path
        self.line = line
        self.what = what

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.what}"


class NodeSetSyntax(InventoryError):
    """A node set cannot be read."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__(text, what)
        self.text = text
        self.what = what

    def __str__(self) -> str:
        return f"node set {self.text!r} cannot be read: {self.what}"


class _Unknown(InventoryError):
    kind = "name"

    def __init__(self, name: str, nearest: str | None = None, known: str = "") -> None:
        super().__init__(name, nearest, known)
        self.name = name
        self.nearest = nearest
        self.known = known  # what there is instead, folded

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        known = f" (there is {self.known})" if self.known else ""
        return f"{self.kind} {self.name} is not in the inventory{known}{hint}"


class UnknownNode(_Unknown):
    """A node that no site file describes."""

    kind = "node"


class UnknownGroup(_Unknown):
    """A group, pool or group source that does not exist."""

    kind = "group"


class UnknownRack(_Unknown):
    """A rack that no site file describes."""

    kind = "rack"


class EmptySelection(InventoryError):
    """The selectors leave no node."""

    def __init__(self, selectors: Sequence[str]) -> None:
        super().__init__(tuple(selectors))
        self.selectors = tuple(selectors)

    def __str__(self) -> str:
        if not self.selectors:
            return "no nodes were selected; all of them is @*"
        return f"no node is selected by {' and '.join(self.selectors)}"


class SecretMissing(InventoryError):
    """A reference leads to no usable secret. Never holds the secret."""

    def __init__(self, ref: str, what: str, remedy: str) -> None:
        super().__init__(ref, what, remedy)
        self.ref = ref
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"secret {self.ref}: {self.what}; {self.remedy}"


class StoreError(InventoryError):
    """Base of what the state store refuses or cannot do."""


class _DatabaseError(StoreError):
    summary = "failed"

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where = where  # the database, without its password
        self.what = what

    def __str__(self) -> str:
        return f"state store {self.where} {self.summary}: {self.what}"


class StoreBusy(_DatabaseError):
    """Somebody else held the database for longer than we wait."""

    summary = "is busy"


class StoreFull(_DatabaseError):
    """The disk under the database is full; nothing of the call was written."""

    summary = "cannot be written"


class StoreBroken(_DatabaseError):
    """The database is damaged, not ours, not writable or made by a newer Muster."""

    summary = "cannot be used"


class StoreUnreachable(_DatabaseError):
    """The database server does not answer or does not let us in."""

    summary = "does not answer"


class HeldByHuman(StoreError):
    """Automation asked to lift what a human placed."""

    def __init__(self, node: str, pool: str, by: str, why: str) -> None:
        super().__init__(node, pool, by, why)
        self.node = node
        self.pool = pool
        self.by = by
        self.why = why

    def __str__(self) -> str:
        return f"{self.node}: held in {self.pool} by {self.by}: {self.why}"


class NotAdmissible(StoreError):
    """A node asked to join an admitted pool without a fresh yes."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(node, reason)
        self.node = node
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.node}: not admitted: {self.reason}"


class NotFree(StoreError):
    """A node that cannot be handed out: held, unproven, busy with a run, or handed out already."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(node, reason)
        self.node = node
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.node}: cannot be handed out: {self.reason}"


class BreakerOpen(StoreError):
    """Too many reliable nodes left by automation: it may not quarantine another one."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(node, why)
        self.node = node
        self.why = why

    def __str__(self) -> str:
        return f"{self.node}: automatic quarantine is stopped: {self.why}"


class UnknownRun(StoreError):
    """No run has this id."""

    def __init__(self, run: str, nearest: str | None = None) -> None:
        super().__init__(run, nearest)
        self.run = run
        self.nearest = nearest

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"run {self.run} is not recorded{hint}"


def first_line(cause: BaseException | None) -> str:
    """Return the first line of what a library said; the rest is for the traceback."""
    lines = str(cause).strip().splitlines()
    return lines[0] if lines else type(cause).__name__
