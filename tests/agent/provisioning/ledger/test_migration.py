"""Ledgers of every version before are taken over, on SQLite and on PostgreSQL: nothing is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.provisioning.ledger import (
    BoardRecord,
    LedgerError,
    StepRecord,
    migrate_ledger,
    open_ledger,
)
from agent.provisioning.ledger.backend import DatabaseFailed, StationsAtWork
from agent.provisioning.ledger.opening import newest_version
from agent.provisioning.ledger.postgresql import PostgresqlDatabase
from agent.provisioning.ledger.sqlite import SqliteDatabase
from tests.support.provisioning.far_database import far_database
from tests.support.provisioning.ledgers import (
    NOW,
    UUID,
    boards_of,
    fixture,
    older_ledger,
    opened,
    registrations_of,
    run_of,
    until_free,
)

VERSIONS = ["0001", "0002"]
OTHER_IMEI = "004401000000099"
OUTCOMES = {  # of the fixtures, by the last digits of the IMEI
    "06": ("done", "done"),
    "14": ("done", "unchanged"),
    "22": ("done", "refused"),
    "30": ("unfinished", "unfinished"),
    "99": ("done", "done"),
}


def columns(address: str) -> set[tuple[str, str]]:
    """Return the tables' columns, by which a migration is seen."""
    if "://" in address:
        import psycopg

        with psycopg.connect(address) as shared:
            query = "SELECT table_name, column_name FROM information_schema.columns"
            return set(shared.execute(f"{query} WHERE table_schema = 'public'").fetchall())
    with closing(sqlite3.connect(address)) as file:
        tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master")]
        return {(table, row[1]) for table in tables
                for row in file.execute(f"PRAGMA table_info({table})")}  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_of_every_version_is_taken_over(address: str, version: str) -> None:
    older_ledger(address, version)
    done = migrate_ledger(address)
    assert (done.before, done.now) == (version, newest_version())
    ledger = opened(address)
    boards = {one.uuid: one for one in boards_of(ledger)}
    assert len(boards) == 6
    old = fixture(version)
    old.row_factory = sqlite3.Row
    for row in old.execute("SELECT * FROM boards"):
        board = boards[row["uuid"]]
        assert (board.outcome, board.last_outcome) == OUTCOMES[board.imei[-2:]]
        assert (board.made_at is not None) == (board.outcome == "done")
        for name in ("public_key", "key_digest", "certificate", "registered_key", "device_id"):
            assert getattr(board, name) == row[name], name
        tag = None if version == "0001" else 101 if board.imei.endswith("22") else 16842753
        assert board.security_tag == tag
        assert bool(board.certificate_serial) == bool(board.certificate)
        assert str(board.updated_at) == f"{row['updated_at']}+00:00"
        notes = [(note.step, note.state, note.detail) for note in ledger.steps(board.uuid)]
        query = "SELECT step, state, detail FROM steps WHERE uuid = ? ORDER BY id"
        assert notes == [tuple(note) for note in old.execute(query, (board.uuid,))]
        held = [
            one for one in registrations_of(ledger, row["device_id"]) if one.uuid == row["uuid"]
        ]
        method = "none" if version == "0001" or not row["registered_key"] else "onboard"
        assert [(one.method, one.finished) for one in held] == [(method, True)]
    doubles = {one.uuid: one.conflict for one in boards.values() if one.conflict}
    assert len(doubles) == 2
    for uuid, text in doubles.items():
        assert boards[uuid].imei == OTHER_IMEI
        assert uuid not in text
        assert any(other in text for other in doubles if other != uuid)
    ledger.claim(run_of())  # and it takes what is new
    ledger.close()


@pytest.mark.parametrize("version", [None, *VERSIONS])
def test_whoever_looks_changes_nothing_and_reads_what_is_there(
    address: str, version: str | None
) -> None:
    if version:
        older_ledger(address, version)
    elif "://" not in address:
        assert not Path(address).exists()
    before = columns(address) if version else set()
    ledger = open_ledger(address, "reader", writes=False)
    boards = boards_of(ledger)
    assert len(boards) == (6 if version else 0)
    assert {one.outcome for one in boards} <= {"done", "unfinished"}
    assert sum(len(ledger.steps(one.uuid)) for one in boards) > 60 if version else True
    assert ledger.older == (version or "")
    assert [*ledger.changes()] if version else not [*ledger.changes()]
    ledger.close()
    if version:
        assert columns(address) == before
    elif "://" not in address:
        assert not Path(address).exists(), "a look makes no ledger"


def test_a_look_at_a_shared_ledger_of_any_version_reads_every_table(cluster: str) -> None:
    address = database_in(cluster, "third")
    older_ledger(address, "0002")
    third = PostgresqlDatabase(address, "")
    third.migrate("0003")
    with third.transaction() as execute:
        execute(
            "INSERT INTO runs SELECT 'r', uuid, imei, device_id, serial, usb_place, slot, '', "
            "station, '', '', '', '', firmware, 10, updated_at, updated_at, 'done', 'proof', 0, "
            "'', '', '', 3, '' FROM boards LIMIT 1",
            {},
        )
    third.close()
    ledger = open_ledger(address, "reader", writes=False)
    assert ledger.older == "0003"
    kinds = [type(one).__name__ for one in ledger.changes()]
    counts = {kind: kinds.count(kind) for kind in set(kinds) - {"StepRecord"}}
    assert counts == {"BoardRecord": 6, "KeyRecord": 6, "RunRecord": 1}
    ledger.close()


DEVICE = "nrf-004401000000006"


def noted(file: sqlite3.Connection, uuid: str, state: str, detail: str) -> None:
    file.execute(
        "INSERT INTO steps (uuid, at, station, step, state, detail) VALUES (?,?,?,?,?,?)",
        (uuid, at(0), "old", "register", state, detail),
    )


@pytest.mark.parametrize("end", ["done", "cut off", "of another key", "taken since"])
def test_a_key_that_older_runs_registered_as_two_devices_works_as_both(
    address: str, end: str
) -> None:
    old = fixture("0002")
    uuid, key = old.execute(
        "SELECT uuid, registered_key FROM boards WHERE registered_key <> '' ORDER BY uuid"
    ).fetchall()[-1]
    named = "0" * 64 if end == "of another key" else key
    noted(old, uuid, "begun", f"onboard {DEVICE} {named}")
    if end != "cut off":
        noted(old, uuid, "done", "01M81S8GT2HTYBVHXPF2EFFQP1")
    if end == "taken since":
        other = old.execute("SELECT uuid FROM boards WHERE uuid <> ?", (uuid,)).fetchone()[0]
        noted(old, other, "begun", f"onboard {DEVICE} {'0' * 64}")
        noted(old, other, "done", "01M81S8GT2HTYBVHXPF2EFFQP2")
    old.commit()
    older_ledger(address, "0002", old)
    migrate_ledger(address)
    ledger = opened(address)
    [board] = [one for one in boards_of(ledger) if one.uuid == uuid]
    first = [one.finished for one in registrations_of(ledger, board.device_id) if one.uuid == uuid]
    second = [(one.uuid, one.finished) for one in registrations_of(ledger, DEVICE)]
    assert first == [True]
    assert second == {"done": [(uuid, True)], "cut off": [(uuid, False)]}.get(end, [])
    ledger.close()


def test_a_registration_of_the_key_before_is_none_of_the_boards_key(address: str) -> None:
    old = fixture("0002")
    old.execute("UPDATE boards SET registered_key = ? WHERE registered_key <> ''", ("0" * 64,))
    old.commit()
    older_ledger(address, "0002", old)
    migrate_ledger(address)
    ledger = opened(address)
    found = [
        one for board in boards_of(ledger) for one in registrations_of(ledger, board.device_id)
    ]
    assert {(one.method, one.finished) for one in found} == {("none", True), ("onboard", False)}
    ledger.close()


@pytest.mark.parametrize("version", ["0003", "0004"])
def test_a_ledger_that_keeps_keys_and_no_registrations_is_taken_over(
    address: str, version: str
) -> None:
    older_ledger(address, "0002")
    database = (
        PostgresqlDatabase(address, "") if "://" in address
        else SqliteDatabase(Path(address), writes=True)
    )  # fmt: skip
    database.migrate(version)
    live = "SELECT uuid FROM keys WHERE retired_at IS NULL ORDER BY uuid"
    with database.transaction(writes=True) as execute:
        retired = execute(live, {})[0][0]
        execute(
            "UPDATE keys SET retired_at = made_at, retired_because = 'it was' WHERE uuid = :uuid",
            {"uuid": retired},
        )
    database.close()
    assert migrate_ledger(address).before == version
    ledger = opened(address)
    for board in boards_of(ledger):
        held = [one.uuid for one in registrations_of(ledger, board.device_id)]
        assert (board.uuid in held) == (board.uuid != retired)
    ledger.close()


def test_a_file_is_migrated_after_a_copy_of_it_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.sqlite"
    older_ledger(str(path), "0001")
    opened(str(path)).close()
    [copy] = path.parent.glob("ledger.sqlite.0001-*Z")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as file:
        assert [*file.iterdump()] == [*fixture("0001").iterdump()]
    opened(str(path)).close()
    assert [*path.parent.glob("ledger.sqlite.0*")] == [copy], "once"


def test_a_copy_that_a_kill_cut_short_has_not_the_name_of_one(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.sqlite"
    older_ledger(str(path), "0002")
    child = os.fork()
    if child == 0:
        from agent.provisioning.ledger import sqlite

        class DiesAsItIsCopied(sqlite3.Connection):
            def backup(self, *_: object, **__: object) -> None:
                os.kill(os.getpid(), signal.SIGKILL)

        usual = sqlite3.connect
        sqlite.sqlite3.connect = (  # type: ignore[assignment]
            lambda *given, **named: usual(*given, factory=DiesAsItIsCopied, **named)
        )
        with suppress(BaseException):
            migrate_ledger(str(path))
        os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert [*path.parent.glob("ledger.sqlite.0002-*Z")] == []
    opened(str(path)).close()
    assert len([*path.parent.glob("ledger.sqlite.0002-*Z")]) == 1


class FullDisk(sqlite3.Connection):
    """What SQLite says of a disk that takes no copy."""

    def backup(self, *_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize("says", ["No space left on device", "database or disk is full"])
def test_a_copy_that_cannot_be_made_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    """A disk that is full: the copy is as large as the ledger."""
    from agent.provisioning.ledger import sqlite

    path = tmp_path / "ledger.sqlite"
    older_ledger(str(path), "0002")
    before = path.read_bytes()

    def full(_folder: Path) -> None:
        raise OSError(28, says)

    if says.startswith("database"):
        connect = partial(sqlite3.connect, factory=FullDisk)
        monkeypatch.setattr(sqlite.sqlite3, "connect", connect)
    else:
        monkeypatch.setattr(sqlite, "sync_folder", full)
    with pytest.raises(LedgerError, match=rf"copy .* cannot be made: {says}"):
        opened(str(path))
    assert path.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} <= {"ledger.sqlite", "ledger.sqlite.lock"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_shared_ledger_is_migrated_when_told_and_by_no_run(cluster: str, version: str) -> None:
    address = database_in(cluster, f"shared_{version}")
    older_ledger(address, version)
    before = columns(address)
    with pytest.raises(LedgerError, match=f"schema {version}") as refused:
        opened(address)
    assert "cellagent provision migrate" in refused.value.hint
    assert columns(address) == before
    migrate_ledger(address)
    opened(address).close()
    assert migrate_ledger(address).before == newest_version()


def test_a_shared_ledger_is_not_migrated_under_a_station_at_work(cluster: str) -> None:
    address = database_in(cluster, "at_work")
    older_ledger(address, "0002")
    before = columns(address)
    board = fixture("0002").execute("SELECT uuid FROM boards").fetchone()[0]
    station = PostgresqlDatabase(address, "")
    assert station.try_lock(board)  # the first thing that a claim of any version does
    with pytest.raises(StationsAtWork, match=f"board {board} at station station"):
        migrate_ledger(address)
    assert columns(address) == before
    station.close()
    until_free(address)
    migrate_ledger(address)


def test_a_station_that_comes_second_to_a_new_shared_ledger_finds_nothing_to_make(
    cluster: str,
) -> None:
    address = database_in(cluster, "second")
    first, second = PostgresqlDatabase(address, ""), PostgresqlDatabase(address, "")
    assert second.version() is None  # it looks before the first one has made the tables
    first.migrate()
    assert first.try_lock("a board, which it is at work on")
    second.migrate()
    assert second.version() == newest_version()
    first.close()
    second.close()


def test_a_shared_ledger_whose_tables_somebody_holds_is_left_as_it_is(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from agent.provisioning.ledger import postgresql

    monkeypatch.setattr(postgresql, "_TABLES_WITHIN_S", 1)
    address = database_in(cluster, "held")
    older_ledger(address, "0002")
    with psycopg.connect(address) as reader:
        reader.execute("SELECT * FROM steps").fetchall()
        with pytest.raises(LedgerError, match="another program has its tables open"):
            migrate_ledger(address)
    migrate_ledger(address)


def test_the_tables_of_a_new_shared_ledger_are_made_in_a_handful_of_round_trips(
    database: str,
) -> None:
    with far_database(database) as far:
        opened(far.url).close()
        took = far.trips
    # To connect, to look, to lock and look again, to make them; each may be told in two messages.
    assert took <= 8


def database_in(cluster: str, name: str) -> str:
    import psycopg

    with psycopg.connect(cluster, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return cluster.replace("/postgres?", f"/{name}?")


# --- whatever an old ledger holds

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
UUIDS = [f"50503041-3633-4261-803d-00000000000{number}" for number in range(4)]
NOTE = st.tuples(
    st.sampled_from(UUIDS),
    st.sampled_from(["key", "register", "proof", "clear", "certificate"]),
    st.sampled_from(["begun", "done", "refused", "failed"]),
    st.one_of(
        TEXT, st.integers(0, 2**33).map(str), st.integers(0, 2**31 - 1).map("{} name.pem".format)
    ),
)
BOARD = st.tuples(
    st.sampled_from(["", "nrf-1", "nrf-2"]),
    st.sampled_from(["", "done", "unchanged", "refused", "failed", "unfinished", "busy"]),
    st.one_of(st.just(""), TEXT),
    st.one_of(st.just(""), TEXT, st.just("-----BEGIN CERTIFICATE-----\nAAAA\n")),
)


def ledger_of(boards: list[tuple[Any, ...]], notes: list[tuple[Any, ...]]) -> sqlite3.Connection:
    old = fixture("0002")
    old.execute("DELETE FROM steps")
    old.execute("DELETE FROM boards")
    for uuid, (device_id, outcome, key, certificate) in zip(UUIDS, boards, strict=False):
        values = {"uuid": uuid, "device_id": device_id, "outcome": outcome, "public_key": key,
                  "certificate": certificate, "key_digest": "D", "writes": 1, "updated_at": at(0),
                  **dict.fromkeys(("imei", "serial", "usb_place", "slot", "firmware", "station",
                                   "reason", "registered_key", "request_id"), "")}  # fmt: skip
        names = ", ".join(values)
        old.execute(f"INSERT INTO boards ({names}) VALUES ({', '.join('?' * len(values))})",
                    [*values.values()])  # fmt: skip
    for second, (uuid, step, state, detail) in enumerate(notes, 1):
        if uuid in UUIDS[: len(boards)]:
            old.execute(
                "INSERT INTO steps (uuid, at, station, step, state, detail) VALUES (?,?,?,?,?,?)",
                (uuid, at(second), "old", step, state, detail),
            )
    old.commit()
    return old


def at(second: int) -> str:
    return (NOW + timedelta(seconds=second)).strftime("%Y-%m-%d %H:%M:%S.%f")


def tag_by_hand(notes: list[StepRecord]) -> str | None:
    """Return the first word of the note that the last finished making of a key began with."""
    keys = [note for note in notes if note.step == "key"]
    last = max((index for index, note in enumerate(keys) if note.state == "done"), default=None)
    if last is None:
        return None
    begun = [note.detail for note in keys[:last] if note.state == "begun"]
    return begun[-1].partition(" ")[0] if begun else None


@settings(max_examples=60, deadline=None)
@given(st.lists(BOARD, max_size=4), st.lists(NOTE, max_size=25))
def test_no_ledger_is_too_odd_to_be_taken_over(
    tmp_path_factory: pytest.TempPathFactory,
    boards: list[tuple[Any, ...]],
    notes: list[tuple[Any, ...]],
) -> None:
    path = tmp_path_factory.mktemp("old") / "ledger.sqlite"
    older_ledger(str(path), "0002", ledger_of(boards, notes))
    ledger = opened(str(path))
    found = {one.uuid: one for one in boards_of(ledger)}
    assert len(found) == len(boards)
    shared = [board[0] for board in boards if board[0]]
    for uuid, (device_id, outcome, key, certificate) in zip(UUIDS, boards, strict=False):
        board = found[uuid]
        steps = list(ledger.steps(uuid))
        judge_outcome(board, outcome or "unfinished", steps)
        assert (board.public_key, board.certificate) == ((key, certificate) if key else ("", ""))
        assert bool(board.conflict) == (shared.count(device_id) > 1)
        by_hand = tag_by_hand(steps) if key else None
        known = by_hand is not None and by_hand.isascii() and by_hand.isdecimal()
        assert board.security_tag == (int(by_hand) if known and int(by_hand) < 2**31 else None)  # type: ignore[arg-type]
        if key and device_id:
            assert uuid in {one.uuid for one in registrations_of(ledger, device_id)}
    numbers = [one.change for one in ledger.changes()]
    assert numbers == sorted(set(numbers))
    ledger.close()


def judge_outcome(board: BoardRecord, outcome: str, steps: list[StepRecord]) -> None:
    """A board is done if it was, or if its last key was registered, or proven, by an older run."""
    ends = [note.step for note in steps if note.state == "done"]
    since = ends[len(ends) - ends[::-1].index("key") :] if "key" in ends else ends
    reached = outcome == "done" or "proof" in since
    reached = reached or (outcome == "unchanged" and "register" in since)
    assert (board.outcome, board.last_outcome) == ("done" if reached else outcome, outcome)


def test_a_migration_that_is_cut_short_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent.provisioning.ledger import backend

    path = tmp_path / "ledger.sqlite"
    older_ledger(str(path), "0002")
    upgrade = backend.upgrade

    def cut_short(tables: backend.Tables, found: str | None, wanted: str | None) -> None:
        upgrade(tables, found, wanted)
        raise DatabaseFailed("disk full")

    monkeypatch.setattr(backend, "upgrade", cut_short)
    with pytest.raises(LedgerError, match="disk full"):
        opened(str(path))
    with closing(sqlite3.connect(path)) as file:
        assert [*file.iterdump()] == [*fixture("0002").iterdump()]
    assert not [*tmp_path.glob("*.0002-*")], "nothing was changed, so no copy is kept"
    monkeypatch.undo()
    ledger = opened(str(path))
    assert ledger.board(UUID) is None
    ledger.close()
