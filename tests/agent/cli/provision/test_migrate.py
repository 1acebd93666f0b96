"""`cellagent provision migrate`, and what other commands do with a ledger of an older version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.files.paths import state_dir
from agent.provisioning.ledger.opening import newest_version
from tests.support.commands.command_line import cellagent
from tests.support.provisioning.ledgers import older_ledger


@pytest.fixture
def older() -> Path:
    path = state_dir() / "ledger.sqlite"
    older_ledger(str(path), "0002")
    return path


def test_a_ledger_is_brought_up_to_date_once_and_the_copy_is_named(older: Path) -> None:
    done = asyncio.run(cellagent("provision", "migrate"))
    assert done.code == 0, done.err
    [copy] = older.parent.glob("ledger.sqlite.0002-*")
    assert f"from schema 0002 to schema {newest_version()}" in done.out
    assert str(copy) in done.out
    again = asyncio.run(cellagent("provision", "migrate", "--json"))
    assert again.lines == [
        {"before": newest_version(), "now": newest_version(), "copy": None, "connected": []}
    ]


def test_an_empty_ledger_is_said_to_be_made() -> None:
    done = asyncio.run(cellagent("provision", "migrate"))
    assert done.out == f"the ledger was empty: its tables were made (schema {newest_version()})\n"


def test_commands_that_look_read_an_older_ledger_and_leave_it(older: Path) -> None:
    before = older.read_bytes()
    status = asyncio.run(cellagent("provision", "status", "--json"))
    assert status.code == 0, status.err
    assert {line["outcome"] for line in status.lines} == {"done", "unfinished"}
    export = asyncio.run(cellagent("provision", "export", "--outcome", "done"))
    assert len(export.out.splitlines()) == 6
    assert older.read_bytes() == before
    assert [one.name for one in older.parent.iterdir()] == ["ledger.sqlite"]
