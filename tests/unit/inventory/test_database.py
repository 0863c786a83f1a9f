"""What goes wrong under the store is said in our own words, and nothing is half written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from inventory.database import open_database, typed
from inventory.errors import StoreBroken, StoreBusy, StoreFull, StoreUnreachable
from inventory.model import Stage
from inventory.store import Store


def test_sqlite_keeps_what_it_has_confirmed(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/s", busy_seconds=1)
    with database.read() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 1000}


def test_a_full_disk_is_said_and_loses_nothing_that_was_there(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/s") as store:
        store.reach("n1", Stage.REACHABLE, run="r")

        @sa.event.listens_for(sa.Engine, "begin")
        def _no_room(connection: sa.Connection) -> None:
            # SQLite's own limit gives the same answer as a disk without room, at the same place.
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

        try:
            with pytest.raises(StoreFull, match="no space is left on the disk"):
                store.event("n1", "note", message="x" * 100_000)
        finally:
            sa.event.remove(sa.Engine, "begin", _no_room)
        assert store.node("n1").stage is Stage.REACHABLE
        assert len(store.events()) == 1


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(b"this is not a database, and it is long enough to be taken for one" * 20)
    with pytest.raises(StoreBroken, match="file is not a database") as caught:
        Store.open(f"sqlite:///{path}")
    assert caught.value.where == str(path)


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Store.open(f"sqlite:///{path}") as store:
        for number in range(200):
            store.event("n1", "note", message=f"{number}" * 50)
    data = bytearray(path.read_bytes())
    data[4096 * 2 :] = b"\xa5" * (len(data) - 4096 * 2)
    path.write_bytes(data)
    with pytest.raises(StoreBroken, match="malformed"), Store.open(f"sqlite:///{path}") as store:
        store.events()


def test_a_place_where_no_file_can_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreBroken, match="its folder cannot be made"):
        Store.open(f"sqlite:///{tmp_path}/file/s")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreBroken, match="unable to open database file"):
        Store.open(f"sqlite:///{tmp_path}/folder")


@pytest.mark.parametrize("url", ["", "muster.sqlite", "nosuch://x:hunter2@y/z"])
def test_a_url_that_is_none_is_said_and_not_repeated(url: str) -> None:
    with pytest.raises(StoreBroken, match="sqlite:///PATH or postgresql://") as caught:
        Store.open(url)
    assert "hunter2" not in str(caught.value)


def test_a_server_that_does_not_answer_is_said_without_the_password() -> None:
    with pytest.raises(StoreUnreachable, match="refused") as caught:
        Store.open("postgresql://muster:hunter2@127.0.0.1:1/muster")
    assert caught.value.where == "postgresql+psycopg://muster:***@127.0.0.1:1/muster"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (psycopg.errors.DiskFull("x"), StoreFull),
        (psycopg.errors.LockNotAvailable("x"), StoreBusy),
        (psycopg.errors.DeadlockDetected("x"), StoreBusy),
        (psycopg.errors.AdminShutdown("x"), StoreUnreachable),
        (psycopg.errors.InsufficientPrivilege("x"), StoreBroken),
        (psycopg.OperationalError("x"), StoreUnreachable),
        (psycopg.DataError("x"), StoreBroken),
        (sa.exc.TimeoutError("x"), StoreBusy),
        (sqlite3.OperationalError("x"), StoreBroken),
    ],
)
def test_each_error_of_a_database_has_one_of_ours(cause: Exception, expected: type[Exception]) -> None:
    wrapped = (
        sa.exc.DBAPIError("statement", {}, cause) if not isinstance(cause, sa.exc.TimeoutError) else cause
    )
    assert type(typed(wrapped, "where", None)) is expected


def test_reading_after_a_kill_in_the_middle_of_a_write_finds_whole_records(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s"
    program = (
        "import os, signal, sys\n"
        "from inventory.store import Store\n"
        "from inventory.model import Stage\n"
        "store = Store.open(sys.argv[1])\n"
        "store.reach('n1', Stage.REACHABLE, run='r')\n"
        "with store._database.write() as connection:\n"
        "    connection.exec_driver_sql(\"UPDATE node SET stage = 'verified'\")\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, url], check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == -9
    with Store.open(url) as store:
        assert store.node("n1").stage is Stage.REACHABLE
        store.reach("n1", Stage.ENLISTED, run="r")
        assert [event.message for event in store.events()] == ["reachable reached", "enlisted reached"]
