"""The same suite on both databases: SQLite, and a PostgreSQL server of our own in a folder."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from inventory.store import Store
from tests import postgresql


class Clock:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture(scope="session")
def server() -> Iterator[sa.URL]:
    """A PostgreSQL server."""
    programs = postgresql.programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    with postgresql.serving(programs) as url:
        yield url


@pytest.fixture
def fresh_postgresql(server: sa.URL) -> Callable[[], str]:
    """Gives the URL of a new, empty database on the server."""
    return lambda: postgresql.fresh(server)


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
