"""Run migrations on the connection that the ledger hands over."""

from alembic import context

from agent.provisioning.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
