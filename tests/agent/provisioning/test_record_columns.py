"""The columns that programs rely on are those of the documentation, and have a version."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.provisioning import record_columns
from agent.provisioning.ledger import BoardRecord, RunRecord
from agent.provisioning.ledger.opening import newest_version
from agent.provisioning.report import Counts, Failures, Report, Times
from tests.support.provisioning.ledgers import opened

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "ledger.md").read_text()
VERSIONS = ROOT / "tests" / "interface" / "ledger-versions.txt"
KINDS = dict(record_columns.KINDS.values())
_TYPES = {"INTEGER": "number", "BIGINT": "number", "DATETIME": "time"}


_INNER = {"alembic_version", "ledger_change"}
"""Tables of the program's own: the version, and SQLite's counter of changes."""
_TABLES_ALONE = ["handover", "registration"]


def documented(kind: str) -> dict[str, tuple[str, str]]:
    """Return the type of each column of a kind in the documentation, and where it stands."""
    section = PAGE.partition(f"\n## {kind.capitalize()}s\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w ]+) \|", section, re.MULTILINE)
    return {name: (type_, where) for name, type_, where in rows}


def columns_of_the_tables(path: Path) -> dict[str, dict[str, str]]:
    opened(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            table.removesuffix("s"): {
                row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({table})")
            }
            for (table,) in names.fetchall()
            if table not in _INNER
        }


def test_every_table_is_documented(tmp_path: Path) -> None:
    tables = columns_of_the_tables(tmp_path / "ledger.sqlite")
    assert set(tables) == {*KINDS, *_TABLES_ALONE}
    assert all(documented(kind) for kind in tables)


@pytest.mark.parametrize("kind", [*KINDS, *_TABLES_ALONE])
def test_each_column_is_documented_and_each_documented_one_is_there(
    kind: str, tmp_path: Path
) -> None:
    page = documented(kind)
    tables = columns_of_the_tables(tmp_path / "ledger.sqlite")[kind]
    assert {name for name, (_, where) in page.items() if "SQL" in where} == set(tables)
    assert tuple(name for name, (_, where) in page.items() if "JSON" in where) == KINDS.get(
        kind, ()
    )
    csv = tuple(name for name, (_, where) in page.items() if "CSV" in where)
    assert csv == (record_columns.BOARD if kind == "board" else ())
    for name, declared in tables.items():
        if page[name][0] != "object":
            assert page[name][0] == _TYPES.get(declared.partition("(")[0], "text"), name


def test_a_change_of_the_columns_has_a_new_version(tmp_path: Path) -> None:
    """A line of the file is never changed: other columns are a migration, or another VERSION."""
    tables = columns_of_the_tables(tmp_path / "ledger.sqlite")
    known = [line.split() for line in VERSIONS.read_text().splitlines() if line[:1] != "#"]
    versions = newest_version(), str(record_columns.VERSION)
    digests = [
        hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()[:16]
        for columns in (tables, KINDS)
    ]
    assert known[-1:] == [[*versions, *digests]]
    assert len({(line[0], line[2]) for line in known}) == len({line[0] for line in known})
    assert len({(line[1], line[3]) for line in known}) == len({line[1] for line in known})
    assert f"tables: **{versions[0]}**" in PAGE
    assert re.search(rf"of\s+JSON\s+and\s+CSV:\s+\*\*{versions[1]}\*\*", PAGE)


def test_the_report_s_keys_are_documented_and_each_documented_one_is_there() -> None:
    section = PAGE.partition("\n### As JSON\n")[2]
    page = set(re.findall(r"`(\w+)`", section)) - {"null"}
    keys = [Report().to_json(), Counts().to_json(), Failures().to_json(), Times().to_json()]
    assert page == {name for each in keys for name in each} | {"group", "step", "reason"}


def test_numbers_are_numbers_and_what_is_not_known_is_null() -> None:
    at = datetime(2026, 3, 31, 6, tzinfo=UTC)
    board = record_columns.as_json(BoardRecord("u-1", writes=3, updated_at=at))
    assert (board["kind"], board["writes"], board["made_at"]) == ("board", 3, None)
    assert board["updated_at"] == "2026-03-31T06:00:00.000+00:00"
    run = record_columns.as_json(RunRecord(id="r", began_at=at, timings='{"key": 1.5}'))
    assert (run["exit"], run["ended_at"], run["timings"]) == (None, None, {"key": 1.5})
    assert record_columns.as_json(RunRecord(id="r", began_at=at))["timings"] is None
    assert json.loads(json.dumps(run)) == run


def test_no_pem_and_nothing_that_claims_a_board_leaves_as_a_record() -> None:
    board = BoardRecord("u-1", public_key="PEM", certificate="PEM", attestation="2dn3…")
    assert not {"PEM", "2dn3…"} & set(record_columns.as_json(board).values())
