"""Which key works as which device: a key may work as several devices, and lose one of them."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from agent.provisioning.ledger.backend import Tables

_PAGE = 1000
_OF_THE_KEY = (
    "id",
    "uuid",
    "public_key",
    "registered_key",
    "registered_as",
    "made_at",
    "device_id",
)
_GIVES_NO_KEY = {"none", "claim"}
_WORDS_OF_A_NOTE = 3
_Noted = Mapping[tuple[str, str], Sequence[tuple[str, str, bool]]]


def upgrade(tables: Tables) -> None:
    """Make the table, with what the live keys and the notes tell of registrations."""
    for statement in (
        f"""
        CREATE TABLE registrations (
            id {tables.number} NOT NULL,
            key INTEGER NOT NULL,
            device_id TEXT NOT NULL,
            method TEXT NOT NULL,
            begun_at {tables.time} NOT NULL,
            registered_at {tables.time},
            replaced_at {tables.time},
            replaced_because TEXT NOT NULL,
            PRIMARY KEY (id),
            FOREIGN KEY(key) REFERENCES keys (id)
        )""",
        """
        CREATE UNIQUE INDEX ix_registrations_live ON registrations (key, device_id)
            WHERE replaced_at IS NULL""",
        "CREATE INDEX ix_registrations_device_id ON registrations (device_id)",
    ):
        tables.execute(statement, {})
    if not tables.are_new:
        _take_over_keys(tables, _last_of_each_device(tables))


def _last_of_each_device(tables: Tables) -> _Noted:
    """Return, by board and key, as which devices it was the last to be registered, by the notes.

    Each with the method, and whether that came to its end.
    """
    notes = tables.execute(
        "SELECT uuid, state, detail FROM steps "
        "WHERE step = 'register' AND state IN ('begun', 'done') ORDER BY id",
        {},
    )
    begun: dict[str, tuple[str, str, str]] = {}
    last: dict[str, tuple[str, str, str, bool]] = {}
    for uuid, state, detail in notes:
        if state == "begun":
            words = str(detail).split(" ")
            begun.pop(uuid, None)
            if len(words) == _WORDS_OF_A_NOTE and words[0] not in _GIVES_NO_KEY:
                begun[uuid] = words[0], words[1], words[2]
        if uuid in begun:
            method, device_id, key = begun[uuid]
            last[device_id] = uuid, key, method, state == "done"
    found: dict[tuple[str, str], list[tuple[str, str, bool]]] = {}
    for device_id, (uuid, key, method, done) in last.items():
        found.setdefault((uuid, key), []).append((device_id, method, done))
    return found


def _take_over_keys(tables: Tables, noted: _Noted) -> None:
    after = 0
    while rows := tables.execute(
        "SELECT keys.id, keys.uuid, public_key, registered_key, registered_as, keys.made_at, "
        "device_id FROM keys JOIN boards ON boards.uuid = keys.uuid "
        "WHERE retired_at IS NULL AND keys.id > :after ORDER BY keys.id LIMIT :page",
        {"after": after, "page": _PAGE},
    ):
        after = rows[-1][0]
        for row in rows:
            for one in _registrations(dict(zip(_OF_THE_KEY, row, strict=True)), noted):
                tables.execute(
                    "INSERT INTO registrations (key, device_id, method, begun_at, registered_at, "
                    "replaced_because) VALUES (:key, :device_id, :method, :at, :registered_at, '')",
                    one,
                )


def _registrations(key: Mapping[str, Any], noted: _Noted) -> list[dict[str, object]]:
    """Return the registrations of a key: as the device that it names, and those of the notes."""
    ours = _fingerprint(key["public_key"])
    found = {name: (how, done) for name, how, done in noted.get((key["uuid"], ours), [])}
    method, _, device_id = key["registered_as"].partition(" ")
    method, device_id = method or "none", device_id or key["device_id"]
    # The ledger kept the registration of a key whose place this one had taken.
    found[device_id] = method, method in _GIVES_NO_KEY or key["registered_key"] == ours
    return [
        {
            "key": key["id"],
            "device_id": device_id,
            "method": method,
            "at": key["made_at"],
            "registered_at": key["made_at"] if done else None,
        }
        for device_id, (method, done) in found.items()
        if device_id
    ]


def _fingerprint(pem: str) -> str:
    """Return the SHA-256 of a public key's SubjectPublicKeyInfo, which PEM is; "" for none."""
    body = "".join(line for line in pem.splitlines() if not line.startswith("-----"))
    try:
        return hashlib.sha256(base64.b64decode(body, validate=True)).hexdigest()
    except ValueError:
        return ""
