"""Boards and their steps."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "boards",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("imei", sa.String(16), nullable=False),
        sa.Column("device_id", sa.String(128), nullable=False),
        sa.Column("serial", sa.String(64), nullable=False),
        sa.Column("usb_place", sa.String(128), nullable=False),
        sa.Column("slot", sa.String(64), nullable=False),
        sa.Column("firmware", sa.String(64), nullable=False),
        sa.Column("station", sa.String(128), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("key_digest", sa.String(64), nullable=False),
        sa.Column("certificate", sa.Text, nullable=False),
        sa.Column("registered_key", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("writes", sa.Integer, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "steps",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("uuid", sa.String(36), sa.ForeignKey("boards.uuid"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("station", sa.String(128), nullable=False),
        sa.Column("step", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("ix_steps_uuid", "steps", ["uuid"])
