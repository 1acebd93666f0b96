"""The runs whose records are given to a command of the station's."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table: a row for each run that is to be given, with the time at which it was."""
    op.create_table(
        "handovers",
        sa.Column("run", sa.String(36), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("station", sa.String(128), nullable=False),
        sa.Column("handed_at", sa.DateTime(timezone=True)),
    )
    due = sa.text("handed_at IS NULL")
    op.create_index("ix_handovers_due", "handovers", ["station"],
                    postgresql_where=due, sqlite_where=due)  # fmt: skip
