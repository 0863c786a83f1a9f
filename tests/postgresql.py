"""A PostgreSQL server of our own in a folder, for tests and rehearsals."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa


def programs() -> Path | None:
    """Return the folder of the server's programs, or None where it is not installed (Debian: postgresql)."""
    on_path = shutil.which("initdb")
    places = [Path(on_path).parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@contextmanager
def serving(programs: Path) -> Iterator[sa.URL]:
    """Run a server that listens on a socket in its own folder only. Raises CalledProcessError."""
    # The server refuses to run as root; and a socket's path must be short.
    user = "postgres" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="muster-pg-", dir="/tmp"))
    if user:
        shutil.chown(folder, user)

    def run(program: str, *words: str) -> None:
        command = [str(programs / program), "-D", f"{folder}/data", *words]
        subprocess.run(command, user=user, cwd=folder, capture_output=True, text=True, check=True)

    try:
        run("initdb", "-U", "muster", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        run("pg_ctl", "-l", f"{folder}/log", "-o", options, "-w", "start")
        try:
            yield sa.URL.create(
                "postgresql+psycopg", "muster", database="postgres", query={"host": str(folder)}
            )
        finally:
            run("pg_ctl", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fresh(server: sa.URL) -> str:
    """Make a new, empty database on the server and return its URL."""
    name = f"t{uuid.uuid4().hex}"
    admin = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    admin.dispose()
    return server.set(database=name).render_as_string(hide_password=False)
