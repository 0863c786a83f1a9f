"""The tables of the state store. migrations/ makes them; a test holds the two together."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

HEAD = "0002"  # the migration that these tables belong to


class UtcTime(sa.types.TypeDecorator[datetime]):
    """An aware time: timestamptz in PostgreSQL, text that sorts in SQLite."""

    impl = sa.String(32)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.String(32))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone reached the store: {value.isoformat()}")
        value = value.astimezone(UTC)
        return value if dialect.name == "postgresql" else value.isoformat(timespec="microseconds")

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        if value is None:
            return None
        return datetime.fromisoformat(value) if isinstance(value, str) else value.astimezone(UTC)


class Words(sa.types.TypeDecorator[str]):
    """Text that a database takes: what came from a console or a BMC may hold what none can store."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """Return `text` with a mark in place of NUL, which PostgreSQL refuses, and of broken Unicode."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
# 64 bits in PostgreSQL; SQLite numbers rows by itself only where the type is INTEGER.
BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

metadata = sa.MetaData(
    naming_convention={
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(column_0_label)s",
    }
)

node = sa.Table(
    "node",
    metadata,
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("stage", sa.String(16), nullable=False),
    sa.Column("stage_at", UtcTime),
    sa.Column("in_stage", sa.String(16)),
    sa.Column("in_stage_at", UtcTime),
    sa.Column("failed_stage", sa.String(16)),
    sa.Column("failed_at", UtcTime),
    sa.Column("reason_code", Words),
    sa.Column("reason", Words),
    sa.Column("next", Words),
    sa.Column("evidence", Words),
    sa.Column("pool", sa.String(16)),
    sa.Column("pool_by", Words),
    sa.Column("pool_why", Words),
    sa.Column("pool_since", UtcTime),
    sa.Column("system_id", Words),
    sa.Column("address", Words),
    sa.Column("boot_id", Words),
    sa.Column("image", Words),
    sa.Column("deployed_at", UtcTime),
    sa.Column("last_power_loss_at", UtcTime),
    sa.Column("doubted_at", UtcTime),
    sa.Column("doubt", Words),
    sa.Column("last_verdict", sa.String(16)),
    sa.Column("last_verdict_at", UtcTime),
    sa.Column("run", Words),
)

run = sa.Table(
    "run",
    metadata,
    sa.Column("id", Words, primary_key=True),
    sa.Column("kind", Words, nullable=False),
    sa.Column("selector", Words, nullable=False),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("who", Words, nullable=False),
    sa.Column("reason", Words),
    sa.Column("options", Json, nullable=False),
)

run_node = sa.Table(
    "run_node",
    metadata,
    sa.Column("run", Words, sa.ForeignKey("run.id"), primary_key=True),
    sa.Column("node", sa.String(63), primary_key=True),
    sa.Column("in_stage", sa.String(16)),
    sa.Column("reached", sa.String(16)),
    sa.Column("failed", sa.String(16)),
    sa.Column("code", Words),
    sa.Column("reason", Words),
    sa.Column("next", Words),
    sa.Column("at", UtcTime),
)

event = sa.Table(
    "event",
    metadata,
    sa.Column("id", BigId, sa.Identity(), primary_key=True),
    sa.Column("ts", UtcTime, nullable=False),
    sa.Column("node", Words),
    sa.Column("run", Words),
    sa.Column("stage", sa.String(16)),
    sa.Column("kind", Words, nullable=False),
    sa.Column("actor", Words, nullable=False),
    sa.Column("host", Words, nullable=False),
    sa.Column("message", Words, nullable=False),
    sa.Column("data", Json, nullable=False),
    sa.Index("ix_event_node", "node", "id"),
    sa.Index("ix_event_run", "run", "id"),
    sa.Index("ix_event_kind", "kind", "ts"),
    sqlite_autoincrement=True,  # an id is never given out twice
)

verdict = sa.Table(
    "verdict",
    metadata,
    sa.Column("id", BigId, sa.Identity(), primary_key=True),
    sa.Column("node", sa.String(63), sa.ForeignKey("node.name"), nullable=False),
    sa.Column("ts", UtcTime, nullable=False),
    sa.Column("run", Words),
    sa.Column("level", Words, nullable=False),
    sa.Column("answer", sa.String(16), nullable=False),
    sa.Column("reasons", Json, nullable=False),
    sa.Column("evidence", Words),
    sa.Index("ix_verdict_node", "node", "id"),
    sqlite_autoincrement=True,
)

allocation = sa.Table(
    "allocation",
    metadata,
    # The key is what keeps a node from being handed out twice.
    sa.Column("node", sa.String(63), sa.ForeignKey("node.name"), primary_key=True),
    sa.Column("name", Words, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("who", Words, nullable=False),
    sa.Column("why", Words),
    sa.Column("since", UtcTime, nullable=False),
    sa.Column("instead_of", sa.String(63)),
)
