"""What a power failure of the controller may take: notes of what is under way, and nothing else."""

from __future__ import annotations

from pathlib import Path

from inventory.database import Database, open_database

FULL, NORMAL = 2, 1


def synchronous(database: Database, *, durable: bool) -> int:
    with database.write(durable=durable) as connection:
        return int(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())


def test_a_decision_waits_for_the_disk_also_after_a_note_did_not(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/store.sqlite", busy_seconds=5)
    try:
        found = [synchronous(database, durable=one) for one in (True, False, True, False, True)]
    finally:
        database.close()
    assert found == [FULL, NORMAL, FULL, NORMAL, FULL]
