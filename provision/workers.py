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
    with _connected(url) as connection:
        taken = connection.execute(sa.select(sa.func.pg_try_advisory_lock(_CLASS, _number(host)))).scalar()
        if taken:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(_CLASS, _number(host))))
        return not taken


def any_alive(url: str) -> bool:
    """Whether anybody executes runs of this site now. Raises StoreUnreachable."""
    query = sa.text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = :ours"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with _connected(url) as connection:
        return bool(connection.execute(query, {"ours": _CLASS}).scalar())


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
    return zlib.crc32(host.encode()) - (1 << 31)
