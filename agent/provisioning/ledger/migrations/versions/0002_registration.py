"""How a board was registered, and the token that claims it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns, empty for the boards that are there."""
    for column in (
        sa.Column("registered_as", sa.String(192), nullable=False, server_default=""),
        sa.Column("attestation", sa.Text, nullable=False, server_default=""),
    ):
        op.add_column("boards", column)
