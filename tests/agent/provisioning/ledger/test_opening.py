"""A ledger of another version is brought up to date or refused; what is none is left alone."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
from ledgers import opened

from agent.provisioning.ledger import (
    BoardRecord,
    KeyRecord,
    LedgerError,
    RunRecord,
    StepRecord,
    opening,
)
from agent.provisioning.ledger.reader import OF_THE_KEY


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"not a database, " * 100)
    with pytest.raises(LedgerError, match="cannot be opened"):
        opened(str(path))
    assert path.read_bytes() == b"not a database, " * 100


def test_a_ledger_from_the_future_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(LedgerError, match="newer version"):
        opened(str(path))


def test_an_up_to_date_ledger_opens_without_alembic(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite")
    opened(path).close()
    code = (
        "import sys; from agent.provisioning.ledger import open_ledger;"
        f"open_ledger({path!r}, 'one').close(); sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_the_code_takes_for_the_newest_version_is_what_the_migrations_lead_to() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    configuration = Config()
    configuration.set_main_option(
        "script_location", str(Path(opening.__file__).parent / "migrations")
    )
    scripts = ScriptDirectory.from_config(configuration)
    assert scripts.get_current_head() == opening.newest_version()
    for script in scripts.walk_revisions():
        assert Path(script.path).name.startswith(f"{script.revision}_")


def test_the_migrations_make_the_columns_that_the_code_uses(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    opened(str(path)).close()
    tables = {"boards": BoardRecord, "keys": KeyRecord, "runs": RunRecord, "steps": StepRecord}
    with closing(sqlite3.connect(path)) as connection:
        for table, record in tables.items():
            found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            columns = {column.name for column in fields(record)}
            assert found == columns - (set(OF_THE_KEY) if table == "boards" else set())


def test_an_installation_without_its_migrations_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_VERSIONS", tmp_path / "none")
    with pytest.raises(LedgerError, match="no migrations of the ledger"):
        opened(str(tmp_path / "ledger.sqlite"))
