"""Several hosts at one PostgreSQL site: who executes there, so that no two do under one name.

A session's advisory lock says "alive": the server drops it with the connection, however that ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from inventory.errors import StoreUnreachable, first_line
from provision.errors import RunnerBusy

_CLASS = 0x4D55_5357  # ours among the advisory locks of the database
_HELD = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = :ours"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@contextmanager
def presence(url: str, host: str) -> Iterator[None]:
    """Be the one who executes as `host` at this site. Raises RunnerBusy, StoreUnreachable."""
    with _connected(url) as connection:
        ask = sa.select(sa.func.pg_try_advisory_lock(_CLASS, _number(host)))
        if not connection.execute(ask).scalar():
            raise RunnerBusy(f"another worker of {host}")
        yield


def alive(url: str, host: str) -> bool:
    """Whether somebody executes as `host` now. Raises StoreUnreachable."""
    return _count(url, _HELD + " AND objid = :host", host=zlib.crc32(host.encode())) > 0


def any_alive(url: str) -> bool:
    """Whether anybody executes runs of this site now. Raises StoreUnreachable."""
    return _count(url, _HELD) > 0


def _count(url: str, query: str, **values: int) -> int:
    # Looked up, not tried: whoever tries a lock holds it for a moment, and would be taken for a worker.
    with _connected(url) as connection:
        return int(connection.execute(sa.text(query), {"ours": _CLASS, **values}).scalar() or 0)


@contextmanager
def _connected(url: str) -> Iterator[sa.Connection]:
    # A connection of its own that no pool hands on: the lock is the connection's.
    engine = sa.create_engine(url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    try:
        connection = engine.connect()
    except sa.exc.OperationalError as error:
        where = sa.make_url(url).render_as_string(hide_password=True)
        raise StoreUnreachable(where, first_line(error.orig or error)) from error
    with connection:
        yield connection
    engine.dispose()


def _number(host: str) -> int:
    """Return the lock's number: signed for the function that takes it, which pg_locks shows unsigned."""
    number = zlib.crc32(host.encode())
    return number - (1 << 32) if number >= 1 << 31 else number
