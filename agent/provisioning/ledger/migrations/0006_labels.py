"""The label that was scanned for a board: on the board, and in the run for which it was scanned."""

from agent.provisioning.ledger.backend import Tables


def upgrade(tables: Tables) -> None:
    """Add the columns; the ledger itself holds that no two boards have one label."""
    for table in ("boards", "runs"):
        tables.execute(f"ALTER TABLE {table} ADD COLUMN label VARCHAR(64) NOT NULL DEFAULT ''", {})
    tables.execute("CREATE UNIQUE INDEX ix_boards_label ON boards (label) WHERE label <> ''", {})
