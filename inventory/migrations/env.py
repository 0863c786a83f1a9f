"""Runs migrations on the connection that inventory.database holds."""

from alembic import context

# One transaction for all steps, DDL too: a killed migration leaves the tables as they were.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
