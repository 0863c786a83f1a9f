"""Copies of the state store: a backup is always one SQLite file, whatever database it came from.

`python -m inventory.backup FILE` saves, `python -m inventory.backup --restore FILE` takes back.
MUSTER_DATABASE_URL names the database, else it is muster.sqlite in MUSTER_STATE (default: var).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from inventory import schema
from inventory.database import Database, open_database
from inventory.errors import StoreBroken, StoreError

_BATCH = 1000
_BUSY_SECONDS = 10.0


def back_up(database: Database, path: Path) -> None:
    """Write all rows as of one moment into the new file `path`; work on the store goes on meanwhile.

    A file that is there already is replaced once the new one is complete. Raises StoreError.
    """
    partial = path.with_name(f".{path.name}.partial")
    for leftover in (partial, *(partial.with_name(partial.name + end) for end in ("-wal", "-shm"))):
        leftover.unlink(missing_ok=True)
    copy = open_database(f"sqlite:///{partial}", busy_seconds=_BUSY_SECONDS)
    try:
        with database.read() as source, copy.write() as target:
            _copy(source, target)
    finally:
        copy.close()  # folds the write-ahead log into the file
    partial.chmod(0o600)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def restore(backup: Path, url: str) -> None:
    """Copy a backup into an empty database. Raises StoreError; a store that holds anything is left alone."""
    if not backup.is_file():
        raise StoreBroken(str(backup), "there is no such backup")
    source = open_database(f"sqlite:///{backup}", busy_seconds=_BUSY_SECONDS)
    try:
        target = open_database(url, busy_seconds=_BUSY_SECONDS)
        try:
            with source.read() as rows, target.write() as empty:
                for table in schema.metadata.sorted_tables:
                    if empty.execute(sa.select(sa.func.count()).select_from(table)).scalar():
                        raise StoreBroken(target.where, f"it is not empty: its table {table.name} has rows")
                _copy(rows, empty)
        finally:
            target.close()
    finally:
        source.close()


def _copy(source: Connection, target: Connection) -> None:
    for table in schema.metadata.sorted_tables:
        query = sa.select(table).order_by(*table.primary_key.columns)
        found = source.execution_options(yield_per=_BATCH).execute(query)
        for rows in found.partitions():
            target.execute(table.insert(), [dict(row._mapping) for row in rows])
        if (
            target.dialect.name == "postgresql"
            and "id" in table.c
            and isinstance(table.c.id.type, sa.BigInteger)
        ):
            _continue_numbering(target, table)


def _continue_numbering(target: Connection, table: sa.Table) -> None:
    """PostgreSQL counts on by itself only for rows that it numbered."""
    highest = target.execute(sa.select(sa.func.max(table.c.id))).scalar()
    if highest is not None:
        sequence = sa.func.pg_get_serial_sequence(table.name, "id")
        target.execute(sa.select(sa.func.setval(sequence, highest)))


def main(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Save or restore as the command line asks. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Save the state store into a file, or restore it from one.")
    parser.add_argument("--restore", action="store_true", help="take FILE back into an empty database")
    parser.add_argument("file", metavar="FILE", type=Path)
    options = parser.parse_args(arguments)
    state = Path(environ.get("MUSTER_STATE") or "var").absolute()
    url = environ.get("MUSTER_DATABASE_URL") or f"sqlite:///{state}/muster.sqlite"
    try:
        if options.restore:
            restore(options.file, url)
        else:
            database = open_database(url, busy_seconds=_BUSY_SECONDS)
            try:
                back_up(database, options.file)
            finally:
                database.close()
    except (StoreError, OSError) as error:
        advice = "docs/site-files.md, State and its backup"
        sys.stderr.write(
            f"error: backup: {error}\n  why: {error.__cause__ or 'see above'}\n  next: {advice}\n"
        )
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
