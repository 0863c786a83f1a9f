"""The same suite on both databases: SQLite, and a PostgreSQL server of our own in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from inventory.store import Store


class Clock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def _programs() -> Path | None:
    on_path = shutil.which("initdb")
    places = [Path(on_path).parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@pytest.fixture(scope="session")
def server() -> Iterator[sa.URL]:
    """A PostgreSQL server that listens on a socket in its own folder only."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    # The server refuses to run as root; and a socket's path must be short.
    user = "postgres" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="muster-pg-", dir="/tmp"))
    if user:
        shutil.chown(folder, user)

    def run(*command: str) -> None:
        done = subprocess.run(command, user=user, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout

    try:
        run(
            f"{programs}/initdb",
            "-D",
            f"{folder}/data",
            "-U",
            "muster",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        )
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run(f"{programs}/pg_ctl", "-D", f"{folder}/data", "-l", f"{folder}/log", "-o", options, "-w", "start")
        try:
            yield sa.URL.create(
                "postgresql+psycopg", "muster", database="postgres", query={"host": str(folder)}
            )
        finally:
            run(f"{programs}/pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def fresh_postgresql(server: sa.URL) -> Iterator[Callable[[], str]]:
    """Gives the URL of a new, empty database on the server."""
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")

    def make() -> str:
        name = f"t{uuid.uuid4().hex}"
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return server.set(database=name).render_as_string(hide_password=False)

    yield make
    admin.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives the URL of a new, empty database, on each kind in turn."""
    if request.param == "postgresql":
        made: Callable[[], str] = request.getfixturevalue("fresh_postgresql")
        return made
    return lambda: f"sqlite:///{tmp_path}/{uuid.uuid4().hex}/muster.sqlite"


@pytest.fixture
def url(fresh: Callable[[], str]) -> str:
    """The URL of one empty database."""
    return fresh()


@pytest.fixture
def clock() -> Clock:
    """A clock that never stands still."""
    return Clock()


@pytest.fixture
def store(url: str, clock: Clock) -> Iterator[Store]:
    """An open, empty store."""
    with Store.open(url, clock=clock, busy_seconds=0.3) as opened:
        yield opened
