"""How the durable engine opens its SQLite file, which commands and the runner share."""

from __future__ import annotations

import sqlite3
from typing import Any

import sqlalchemy


def sqlite_engine(url: str) -> sqlalchemy.Engine | None:
    """Return an engine for a SQLite file that many processes share: WAL, and waits for locks."""
    if not url.startswith("sqlite"):
        return None
    engine = sqlalchemy.create_engine(url, pool_size=20)

    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in ("busy_timeout=30000", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:
                # SQLite does not wait where two switch a file at the same moment; the other one has done it.
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise

    sqlalchemy.event.listen(engine, "connect", prepare)
    return engine
