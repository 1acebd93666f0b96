"""The tables of the ledger; what changes here needs a migration of its own."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, Integer, MetaData, String, Table, Text

HEAD = "0002"
"""The newest migration; a ledger that says another one is brought up to it."""

metadata = MetaData()

boards = Table(
    "boards",
    metadata,
    Column("uuid", String(36), primary_key=True),
    Column("imei", String(16), nullable=False, default=""),
    Column("device_id", String(128), nullable=False, default=""),
    Column("serial", String(64), nullable=False, default=""),
    Column("usb_place", String(128), nullable=False, default=""),
    Column("slot", String(64), nullable=False, default=""),
    Column("firmware", String(64), nullable=False, default=""),
    Column("station", String(128), nullable=False, default=""),
    Column("outcome", String(16), nullable=False, default=""),
    Column("reason", Text, nullable=False, default=""),
    Column("public_key", Text, nullable=False, default=""),
    Column("key_digest", String(64), nullable=False, default=""),
    Column("certificate", Text, nullable=False, default=""),
    Column("registered_key", String(64), nullable=False, default=""),
    Column("registered_as", String(192), nullable=False, default=""),
    Column("request_id", String(64), nullable=False, default=""),
    Column("attestation", Text, nullable=False, default=""),
    Column("writes", Integer, nullable=False, default=0),
    Column("updated_at", DateTime(timezone=True), nullable=False),
)

steps = Table(
    "steps",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("uuid", String(36), ForeignKey("boards.uuid"), nullable=False, index=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("station", String(128), nullable=False),
    Column("step", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("detail", Text, nullable=False, default=""),
)
