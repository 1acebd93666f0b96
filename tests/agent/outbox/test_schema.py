"""The tables of the outbox: made private, found sound, and their damage told from a full disk."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.outbox.schema import DAMAGE, INSERT, check, connect, is_damage, row_crc


def test_a_new_file_is_private_and_sound(tmp_path: Path) -> None:
    path = tmp_path / "outbox.sqlite"
    with closing(connect(path)) as connection:
        check(connection)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "damage",
    [
        "PRAGMA user_version=1",
        "DELETE FROM about WHERE name = 'id'",
        "INSERT INTO about VALUES('last id', 'many')",
        "INSERT INTO counts VALUES('delivered', 'many')",
        "INSERT INTO recent VALUES(x'00', 'yesterday')",
        INSERT.replace("?,?,?,?,?,?,?,?,?", "1, 'song', 'kit', 1, 0.0, 0.0, '', x'', 0"),
        "DROP TABLE recent",
    ],
)
def test_a_file_that_is_not_what_it_must_be_is_named_as_damaged(
    tmp_path: Path, damage: str
) -> None:
    with closing(connect(tmp_path / "outbox.sqlite")) as connection:
        connection.execute(damage)
        with pytest.raises(DAMAGE):
            check(connection)


@pytest.mark.parametrize(
    ("code", "damaged"),
    [
        (sqlite3.SQLITE_CORRUPT, True),
        (sqlite3.SQLITE_NOTADB, True),
        (sqlite3.SQLITE_IOERR_SHORT_READ, True),
        (sqlite3.SQLITE_READONLY, True),  # the file can be written to: its header says otherwise
        (sqlite3.SQLITE_FULL, False),
        (sqlite3.SQLITE_IOERR, False),
        (sqlite3.SQLITE_CANTOPEN, False),
        (sqlite3.SQLITE_BUSY, False),
    ],
)
def test_a_disk_in_trouble_is_no_damage_of_the_file(
    tmp_path: Path, code: int, damaged: bool
) -> None:
    path = tmp_path / "outbox.sqlite"
    path.touch(0o600)
    error = sqlite3.OperationalError("refused")
    error.sqlite_errorcode = code
    assert is_damage(error, path) is damaged


@given(body=st.binary(min_size=1, max_size=200), data=st.data())
def test_the_crc_of_a_row_finds_every_changed_byte(body: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(body) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda value: value != body[at]))
    changed = body[:at] + bytes([other]) + body[at + 1 :]
    assert row_crc("event", "kit", 1.0, "{}", body) != row_crc("event", "kit", 1.0, "{}", changed)
