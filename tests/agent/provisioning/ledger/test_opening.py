"""A ledger of another version is brought up to date or refused; what is none is left alone."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agent.extras import MissingExtra
from agent.provisioning.ledger import (
    BoardRecord,
    KeyRecord,
    LedgerError,
    RunRecord,
    StepRecord,
    backend,
    open_ledger,
    opening,
)
from agent.provisioning.ledger.reader import OF_THE_KEY
from tests.support.provisioning.ledgers import opened


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, " * 100)
    with pytest.raises(LedgerError, match="cannot be opened"):
        opened(str(path))
    assert path.read_bytes() == b"not a database, " * 100


def test_a_ledger_is_new_once_and_that_is_told(tmp_path: Path) -> None:
    """A mount that is lost, or another home, would be known by it alone."""
    path, told = str(tmp_path / "ledger.sqlite"), list[str]()
    for _ in range(2):
        open_ledger(path, "one", on_new=told.append).close()
    assert told == [path]


def test_a_ledger_below_the_home_is_the_same_one_from_every_folder(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder called ~ of each folder, it was a new one for each that knew no key."""
    told: list[str] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        open_ledger("~/bench/ledger.sqlite", "one", on_new=told.append).close()
    assert told == ["~/bench/ledger.sqlite"]
    assert (private_home / "bench" / "ledger.sqlite").is_file()
    assert not [*tmp_path.glob("*/*")]


def test_a_ledger_from_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(LedgerError, match="newer version"):
        opened(str(path))


def test_the_migrations_are_numbered_and_lead_to_the_newest_version(tmp_path: Path) -> None:
    known = list(backend.migrations())
    assert known == [f"{number:04}" for number in range(1, len(known) + 1)]
    assert opening.newest_version() == known[-1]
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    assert found == [(known[-1],)]


def test_the_migrations_make_the_columns_that_the_code_uses(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    tables = {"boards": BoardRecord, "keys": KeyRecord, "runs": RunRecord, "steps": StepRecord}
    with closing(sqlite3.connect(path)) as connection:
        for table, record in tables.items():
            found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            columns = set(record.__struct_fields__)
            assert found == columns - (set(OF_THE_KEY) if table == "boards" else set())


def test_an_installation_without_its_migrations_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "MIGRATIONS", tmp_path / "none")
    with pytest.raises(LedgerError, match="no migrations of the ledger"):
        opened(str(tmp_path / "ledger.sqlite"))


@pytest.mark.contract("C10")
def test_a_server_that_is_not_there_is_named_without_the_user() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError) as refused:
        opened("postgresql://somebody@127.0.0.1:1/kits")
    assert "the ledger postgresql://127.0.0.1:1/kits cannot be opened" in str(refused.value)
    assert "somebody" not in str(refused.value) + refused.value.hint


@pytest.mark.contract("C10")
def test_a_server_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"^a ledger on PostgreSQL needs the extra"):
        opened("postgresql://somebody@127.0.0.1:1/kits")
