"""What PostgreSQL's errors mean. Imported only by a site whose state lies in PostgreSQL."""

from __future__ import annotations

import psycopg

from inventory.errors import StoreBroken, StoreBusy, StoreError, StoreFull, StoreUnreachable, first_line

_BUSY = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)


def typed(cause: BaseException | None, where: str) -> StoreError:
    """Return the error of ours that says what the driver's error means."""
    if isinstance(cause, psycopg.errors.DiskFull):
        return StoreFull(where, "no space is left on the server's disk")
    if isinstance(cause, _BUSY):
        return StoreBusy(where, "somebody else kept it locked")
    if isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnreachable(where, first_line(cause))
    return StoreBroken(where, first_line(cause))
