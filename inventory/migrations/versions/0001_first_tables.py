"""Nodes, runs, events and verdicts; events can only be added."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

_SQLITE_GUARDS = (
    "CREATE TRIGGER event_no_update BEFORE UPDATE ON event "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END",
    "CREATE TRIGGER event_no_delete BEFORE DELETE ON event "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END",
    # INSERT OR REPLACE deletes without firing the trigger above.
    "CREATE TRIGGER event_no_replace BEFORE INSERT ON event "
    "WHEN EXISTS (SELECT 1 FROM event WHERE id = NEW.id) "
    "BEGIN SELECT RAISE(ABORT, 'events are append-only'); END",
)
_POSTGRESQL_GUARDS = (
    "CREATE FUNCTION muster_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'restrict_violation'; END $$",
    "CREATE TRIGGER event_no_change BEFORE UPDATE OR DELETE ON event "
    "FOR EACH ROW EXECUTE FUNCTION muster_append_only()",
    "CREATE TRIGGER event_no_truncate BEFORE TRUNCATE ON event "
    "FOR EACH STATEMENT EXECUTE FUNCTION muster_append_only()",
)


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    time = sa.String(32) if sqlite else postgresql.TIMESTAMP(timezone=True)
    json = sa.JSON() if sqlite else postgresql.JSONB()
    number = sa.Integer() if sqlite else sa.BigInteger()
    op.create_table(
        "node",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("stage_at", time),
        sa.Column("in_stage", sa.String(16)),
        sa.Column("in_stage_at", time),
        sa.Column("failed_stage", sa.String(16)),
        sa.Column("failed_at", time),
        sa.Column("reason_code", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("next", sa.Text),
        sa.Column("evidence", sa.Text),
        sa.Column("pool", sa.String(16)),
        sa.Column("pool_by", sa.Text),
        sa.Column("pool_why", sa.Text),
        sa.Column("pool_since", time),
        sa.Column("system_id", sa.Text),
        sa.Column("address", sa.Text),
        sa.Column("boot_id", sa.Text),
        sa.Column("image", sa.Text),
        sa.Column("deployed_at", time),
        sa.Column("last_power_loss_at", time),
        sa.Column("doubted_at", time),
        sa.Column("doubt", sa.Text),
        sa.Column("last_verdict", sa.String(16)),
        sa.Column("last_verdict_at", time),
        sa.Column("run", sa.Text),
        sa.PrimaryKeyConstraint("name", name="pk_node"),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("selector", sa.Text, nullable=False),
        sa.Column("started_at", time, nullable=False),
        sa.Column("ended_at", time),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("options", json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
    )
    op.create_table(
        "run_node",
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("node", sa.String(63), nullable=False),
        sa.Column("in_stage", sa.String(16)),
        sa.Column("reached", sa.String(16)),
        sa.Column("failed", sa.String(16)),
        sa.Column("code", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("next", sa.Text),
        sa.Column("at", time),
        sa.PrimaryKeyConstraint("run", "node", name="pk_run_node"),
        sa.ForeignKeyConstraint(["run"], ["run.id"], name="fk_run_node_run"),
    )
    op.create_table(
        "event",
        sa.Column("id", number, sa.Identity(), nullable=False),
        sa.Column("ts", time, nullable=False),
        sa.Column("node", sa.Text),
        sa.Column("run", sa.Text),
        sa.Column("stage", sa.String(16)),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("data", json, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_event_node", "event", ["node", "id"])
    op.create_index("ix_event_run", "event", ["run", "id"])
    op.create_table(
        "verdict",
        sa.Column("id", number, sa.Identity(), nullable=False),
        sa.Column("node", sa.String(63), nullable=False),
        sa.Column("ts", time, nullable=False),
        sa.Column("run", sa.Text),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("answer", sa.String(16), nullable=False),
        sa.Column("reasons", json, nullable=False),
        sa.Column("evidence", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_verdict"),
        sa.ForeignKeyConstraint(["node"], ["node.name"], name="fk_verdict_node"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_verdict_node", "verdict", ["node", "id"])
    for statement in _SQLITE_GUARDS if sqlite else _POSTGRESQL_GUARDS:
        op.execute(statement)
