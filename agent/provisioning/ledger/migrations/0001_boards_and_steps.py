"""Boards and their steps."""

from agent.provisioning.ledger.backend import Tables


def upgrade(tables: Tables) -> None:
    """Make both tables."""
    for statement in (
        f"""
        CREATE TABLE boards (
            uuid VARCHAR(36) NOT NULL,
            imei VARCHAR(16) NOT NULL,
            device_id VARCHAR(128) NOT NULL,
            serial VARCHAR(64) NOT NULL,
            usb_place VARCHAR(128) NOT NULL,
            slot VARCHAR(64) NOT NULL,
            firmware VARCHAR(64) NOT NULL,
            station VARCHAR(128) NOT NULL,
            outcome VARCHAR(16) NOT NULL,
            reason TEXT NOT NULL,
            public_key TEXT NOT NULL,
            key_digest VARCHAR(64) NOT NULL,
            certificate TEXT NOT NULL,
            registered_key VARCHAR(64) NOT NULL,
            request_id VARCHAR(64) NOT NULL,
            writes INTEGER NOT NULL,
            updated_at {tables.time} NOT NULL,
            PRIMARY KEY (uuid)
        )""",
        f"""
        CREATE TABLE steps (
            id {tables.number} NOT NULL,
            uuid VARCHAR(36) NOT NULL,
            at {tables.time} NOT NULL,
            station VARCHAR(128) NOT NULL,
            step VARCHAR(32) NOT NULL,
            state VARCHAR(16) NOT NULL,
            detail TEXT NOT NULL,
            PRIMARY KEY (id),
            FOREIGN KEY(uuid) REFERENCES boards (uuid)
        )""",
        "CREATE INDEX ix_steps_uuid ON steps (uuid)",
    ):
        tables.execute(statement, {})
