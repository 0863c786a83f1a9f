"""Adds events: the one place that writes them. The caller holds the write transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.engine import Connection

from inventory import rows, schema
from inventory.model import Stage
from inventory.records import AUTOMATION

_ADD = schema.event.insert()  # built once: there are tens of thousands of events in a large bring-up


@dataclass(frozen=True, slots=True)
class Journal:
    """Stamps events with the time and the host."""

    clock: Callable[[], datetime]
    host: str

    def add(  # noqa: PLR0913 - the columns of an event
        self,
        connection: Connection,
        kind: str,
        message: str,
        *,
        node: str | None = None,
        run: str | None = None,
        stage: Stage | None = None,
        actor: str = AUTOMATION,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Add one event. `data` is plain JSON values; a Secret in it is a TypeError."""
        connection.execute(
            _ADD,
            {
                "ts": self.clock(),
                "node": node,
                "run": run,
                "stage": stage,
                "kind": kind,
                "actor": actor,
                "host": self.host,
                "message": message,
                "data": rows.plain(data or {}),
            },
        )
