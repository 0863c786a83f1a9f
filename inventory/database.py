"""The database under the state store: opening, transactions, and errors that say what happened."""

from __future__ import annotations

import errno
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from inventory import schema
from inventory.errors import StoreBroken, StoreBusy, StoreError, StoreFull, first_line

_MIGRATIONS = Path(__file__).with_name("migrations")
_ADVISORY_LOCK = 0x4D55_5354  # one writer at a time, so that event ids rise in the order of commits
_CONNECT_SECONDS = 10
_ROOM = 1 << 20  # bytes; an I/O error with less than this left is a full disk


class Database:
    """An open database whose tables are up to date."""

    def __init__(self, engine: Engine, *, busy_seconds: float) -> None:
        self.engine = engine
        self._busy_seconds = busy_seconds
        self._writer = threading.Lock()
        self.where = _name(engine.url)
        self.sqlite_path = _sqlite_path(engine.url)

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction that no other writer overlaps. Raises StoreError.

        What is not `durable` outlives our processes, but on SQLite not a power failure of this host: for
        what says that something is under way, never for what something was decided by.
        """
        # SQLite's waiters poll and may starve; those of one process queue here instead.
        if not self._writer.acquire(timeout=self._busy_seconds):
            raise StoreBusy(self.where, "another thread kept it locked")
        try:
            with self._write(durable) as connection:
                yield connection
        finally:
            self._writer.release()

    @contextmanager
    def _write(self, durable: bool) -> Iterator[Connection]:
        with self._transaction(writes=True, durable=durable) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one moment. Raises StoreError."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, writes: bool, durable: bool = True) -> Iterator[Connection]:
        options = {"muster_writes": writes, "muster_durable": durable}
        try:
            with (
                self.engine.connect().execution_options(**options) as connection,
                connection.begin(),
            ):
                yield connection
        except (DBAPIError, PoolTimeout, sqlite3.Error) as exc:
            raise typed(exc, self.where, self.sqlite_path) from exc

    def _isolation(self, *, writes: bool) -> dict[str, str]:
        if self.sqlite_path is not None:
            return {}
        return {"isolation_level": "READ COMMITTED" if writes else "REPEATABLE READ"}

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()


def open_database(url: str, *, busy_seconds: float) -> Database:
    """Open `url` and bring its tables up to date. Raises StoreError."""
    try:
        parsed = make_url(url)
        if parsed.drivername in {"postgresql", "postgres"}:
            parsed = parsed.set(drivername="postgresql+psycopg")
        engine = _engine(parsed, busy_seconds)
    except (ArgumentError, NoSuchModuleError) as exc:
        raise StoreBroken("(its URL is not shown)", "sqlite:///PATH or postgresql://… is expected") from exc
    database = Database(engine, busy_seconds=busy_seconds)
    try:
        if database.sqlite_path is not None:
            _prepare_file(database.sqlite_path, database.where, busy_seconds)
        _migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def typed(exc: Exception, where: str, path: Path | None) -> StoreError:
    """Return the error of ours that says what the database's error means."""
    cause = exc.orig if isinstance(exc, DBAPIError) else exc
    if isinstance(cause, sqlite3.Error):
        return _typed_sqlite(cause, where, path)
    if isinstance(cause, PoolTimeout):
        return StoreBusy(where, "all connections are in use")
    # Imported here: the driver costs every command a tenth of a second, and most sites use SQLite.
    from inventory.postgresql import typed as typed_postgresql

    return typed_postgresql(cause, where)


def _typed_sqlite(cause: sqlite3.Error, where: str, path: Path | None) -> StoreError:
    # Python's own misuse errors carry no code; the low byte is the class, the rest the detail.
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (
        code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} and _full(path)
    ):
        return StoreFull(where, "no space is left on the disk")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreBusy(where, "somebody else kept it locked")
    return StoreBroken(where, first_line(cause))


def _full(path: Path | None) -> bool:
    try:
        return path is not None and shutil.disk_usage(path.parent).free < _ROOM
    except OSError:
        return False


def _name(url: URL) -> str:
    path = _sqlite_path(url)
    return str(path) if path is not None else url.render_as_string(hide_password=True)


def _sqlite_path(url: URL) -> Path | None:
    if url.get_backend_name() != "sqlite":
        return None
    return Path(url.database or ":memory:")


def _engine(url: URL, busy_seconds: float) -> Engine:
    milliseconds = int(busy_seconds * 1000)
    if url.get_backend_name() != "sqlite":
        wait = f"-c lock_timeout={milliseconds} -c timezone=UTC"
        arguments = {"connect_timeout": _CONNECT_SECONDS, "options": wait}
        return sa.create_engine(url, pool_pre_ping=True, connect_args=arguments)
    engine = sa.create_engine(url)

    @event.listens_for(engine, "connect")
    def _connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # We say BEGIN ourselves: the driver would begin late, and read before it locks.
        connection.isolation_level = None
        for pragma in (f"busy_timeout={milliseconds}", "foreign_keys=ON", "synchronous=FULL"):
            connection.cursor().execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        options = connection.get_execution_options()
        writes = options.get("muster_writes", True)
        durable = options.get("muster_durable", True)
        if connection.info.get("durable", True) != durable:
            connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.info["durable"] = durable
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _prepare_file(path: Path, where: str, busy_seconds: float) -> None:
    """Make the folder and switch the file to WAL, which stays with the file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            raise StoreFull(where, "no space is left on the disk") from exc
        raise StoreBroken(where, "its folder cannot be made") from exc
    deadline = time.monotonic() + busy_seconds
    try:
        connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
        try:
            # SQLite does not wait for others in this one statement: two first starts would collide.
            while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                try:
                    connection.execute("PRAGMA journal_mode=WAL")
                except sqlite3.OperationalError as exc:
                    busy = exc.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                    if not busy or time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        finally:
            connection.close()
    except sqlite3.Error as exc:
        raise typed(exc, where, path) from exc


def _migrate(database: Database) -> None:
    with database.read() as connection:
        if _version(connection) == schema.HEAD:
            return
    with database.write() as connection:
        version = _version(connection)  # again: another process may have been quicker
        if version == schema.HEAD:
            return
        # Imported here: it costs every command a quarter of a second, and few ever migrate.
        from alembic import command
        from alembic.config import Config
        from alembic.util.exc import CommandError

        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS))
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, schema.HEAD)
        except CommandError as exc:
            raise StoreBroken(
                database.where, f"its tables are of version {version}, which this Muster does not know"
            ) from exc


def _version(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return version
