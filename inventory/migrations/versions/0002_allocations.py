"""Which nodes are handed out; and events found by kind, for the breaker and the ranking."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    time = sa.String(32) if sqlite else postgresql.TIMESTAMP(timezone=True)
    op.create_table(
        "allocation",
        sa.Column("node", sa.String(63), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text),
        sa.Column("since", time, nullable=False),
        sa.Column("instead_of", sa.String(63)),
        sa.PrimaryKeyConstraint("node", name="pk_allocation"),
        sa.ForeignKeyConstraint(["node"], ["node.name"], name="fk_allocation_node"),
    )
    op.create_index("ix_event_kind", "event", ["kind", "ts"])
