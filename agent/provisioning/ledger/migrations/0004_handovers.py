"""The runs whose records are given to a command of the station's."""

from agent.provisioning.ledger.backend import Tables


def upgrade(tables: Tables) -> None:
    """Make the table: a row for each run that is to be given, with the time at which it was."""
    for statement in (
        f"""
        CREATE TABLE handovers (
            run VARCHAR(36) NOT NULL,
            station VARCHAR(128) NOT NULL,
            handed_at {tables.time},
            PRIMARY KEY (run),
            FOREIGN KEY(run) REFERENCES runs (id)
        )""",
        "CREATE INDEX ix_handovers_due ON handovers (station) WHERE handed_at IS NULL",
    ):
        tables.execute(statement, {})
