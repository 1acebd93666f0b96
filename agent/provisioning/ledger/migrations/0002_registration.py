"""How a board was registered, and the token that claims it."""

from agent.provisioning.ledger.backend import Tables


def upgrade(tables: Tables) -> None:
    """Add two columns, empty for the boards that are there."""
    for column in ("registered_as VARCHAR(192)", "attestation TEXT"):
        tables.execute(f"ALTER TABLE boards ADD COLUMN {column} DEFAULT '' NOT NULL", {})
