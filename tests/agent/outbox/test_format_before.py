"""An outbox of the format before is taken over: whole, torn, and when the start is killed."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from agent.outbox import ItemKind, NewItem
from agent.outbox.items import Selection
from tests.support.outbox.killed_runs import killed_runs
from tests.support.outbox.outboxes import Clock, bodies, event, outbox, totals, waiting

NOW = Clock().now
ITEMS = [
    NewItem(ItemKind.EVENT, "kit", b'{"n":%d,"pad":"%s"}' % (n, b"x" * (n % 700)))
    for n in range(600)
]
BODIES = [item.body for item in ITEMS]
NAME = "0123456789abcdef0123456789abcdef"
_SCHEMA = """
CREATE TABLE items(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, device TEXT NOT NULL,
    message INTEGER NOT NULL, captured REAL NOT NULL, added REAL NOT NULL, meta TEXT NOT NULL,
    body BLOB NOT NULL, crc INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0,
    refusals INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT '');
CREATE INDEX parked ON items(id) WHERE state = 1;
CREATE INDEX continuations ON items(message) WHERE message <> id;
CREATE TABLE recent(mark BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE counts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version=2;
"""


def write(
    folder: Path, items: Sequence[NewItem], *, at: float, statements: Sequence[str] = ()
) -> Path:
    """Write the file with these items, then run `statements`; return its path."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    path = folder / "outbox.sqlite"
    path.touch(0o600)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for pragma in ("auto_vacuum=INCREMENTAL", "locking_mode=EXCLUSIVE", "journal_mode=WAL"):
            database.execute(f"PRAGMA {pragma}")
        database.executescript("BEGIN;" + _SCHEMA)
        database.execute("INSERT INTO about VALUES('id', ?)", (NAME,))
        for number, item in enumerate(items, 1):
            meta = json.dumps(dict(item.meta)) if item.meta else ""
            told = f"{item.kind.value}\n{item.device}\n{at!r}\n{meta}".encode()
            crc = zlib.crc32(item.body, zlib.crc32(told))
            row = (number, item.kind.value, item.device, number, at, at, meta, item.body, crc)
            database.execute(
                "INSERT INTO items(id, kind, device, message, captured, added, meta, body, crc) "
                "VALUES(?,?,?,?,?,?,?,?,?)",
                row,
            )
        for statement in statements:
            database.execute(statement)
        database.execute("COMMIT")
    return path


def taken(path: Path) -> Path:
    """Return the name of the file once it is taken over."""
    return path.with_name(f"{path.name}.taken")


def deliver_all(folder: Path) -> list[bytes]:
    """Deliver what waits as the loop does, in an outbox that is opened for it."""
    with outbox(folder) as box:
        items = box.transact(
            lambda store: store.take("kit", ItemKind.EVENT, Selection(10**6, 1 << 40))
        )
        box.transact(lambda store: store.remove_delivered([item.id for item in items]))
    return [item.body for item in items]


def test_what_waits_keeps_its_order_its_keys_and_what_is_known_of_it(tmp_path: Path):
    path = write(
        tmp_path / "state",
        ITEMS,
        at=NOW,
        statements=[
            "UPDATE items SET state = 1, refusals = 3, reason = 'no' WHERE id = 1",
            "INSERT INTO counts VALUES('delivered', 41)",
            "INSERT INTO recent VALUES(CAST('keyboot-17' AS BLOB), 1700000000.0)",
            "INSERT INTO about VALUES('in doubt event kit', '5')",
        ],
    )
    with outbox(tmp_path) as box:
        assert bodies(box, ItemKind.EVENT) == BODIES[1:]
        assert waiting(box, ItemKind.EVENT)[0].idempotency_key == f"{NAME}-2"
        (parked,) = box.transact(lambda store: store.list_items(1))
        assert (parked.parked, parked.refusals) == ("no", 3)
        assert totals(box).counts["delivered"] == 41
        assert box.put([NewItem(ItemKind.EVENT, "kit", b"{}", key="boot-17")]).duplicates == 1
        whole = Selection(100, 1 << 30)
        again = box.transact(lambda store: store.next_batch("kit", ItemKind.EVENT, whole))
        assert [item.id for item in again] == [2, 3, 4, 5]
        assert box.damage is None
        assert taken(path).exists()
    with outbox(tmp_path) as box:
        assert box.put([NewItem(ItemKind.EVENT, "kit", b"{}", key="boot-17")]).duplicates == 1


def test_an_item_that_none_can_be_now_is_counted_as_lost_and_the_others_are_taken_over(
    tmp_path: Path,
):
    write(tmp_path / "state", [NewItem(ItemKind.EVENT, "kit", b"1"), event(2)], at=NOW)
    statement = "UPDATE items SET meta = '{}', crc = {} WHERE id = 1"
    meta = '{"huge": 18446744073709551616}'
    crc = zlib.crc32(b"1", zlib.crc32(f"event\nkit\n{NOW!r}\n{meta}".encode()))
    with closing(sqlite3.connect(tmp_path / "state" / "outbox.sqlite")) as file, file:
        file.execute(statement.format(meta, crc))
    with outbox(tmp_path) as box:
        assert box.damage is not None
        assert box.damage.lost == 1
        assert bodies(box, ItemKind.EVENT) == [event(2).body]


def test_the_file_stays_until_all_of_it_is_delivered(tmp_path: Path):
    path = write(tmp_path / "state", ITEMS, at=NOW)
    with outbox(tmp_path) as box:
        some = box.transact(
            lambda store: store.take("kit", ItemKind.EVENT, Selection(500, 1 << 40))
        )
        box.transact(lambda store: store.remove_delivered([item.id for item in some]))
        box.put([event(1_000_000)])
    assert taken(path).exists()
    assert deliver_all(tmp_path) == [*BODIES[500:], event(1_000_000).body]
    assert not list(path.parent.glob("outbox.sqlite*[!k]"))
    with outbox(tmp_path) as box:
        assert totals(box).waiting == 0


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_of_a_torn_file_the_rows_that_can_be_read_are_taken_and_the_damage_is_told(
    tmp_path: Path, kept: float
):
    path = write(tmp_path / "state", ITEMS, at=NOW)
    data = path.read_bytes()
    data = data[: int(len(data) * kept)]
    path.write_bytes(data)
    # What is free of a page, too, holds rows: of those that have moved to another.
    whole = [body for body in BODIES if body in data]
    with outbox(tmp_path) as box:
        found = bodies(box, ItemKind.EVENT)
        assert found == [body for body in BODIES if body in set(found)]
        assert len(found) > max(100, len(whole) - 20)
        assert box.damage is not None
        assert totals(box).counts["damaged_files"] == 1
        assert totals(box).counts["salvaged"] == len(found)
    with outbox(tmp_path) as box:
        assert box.damage is None


def test_a_page_that_is_damaged_hides_only_what_it_holds(tmp_path: Path):
    path = write(tmp_path / "state", ITEMS, at=NOW)
    data = bytearray(path.read_bytes())
    data[20 * 4096 : 20 * 4096 + 300] = b"\xff" * 300
    path.write_bytes(data)
    with outbox(tmp_path) as box:
        assert len(bodies(box, ItemKind.EVENT)) > 500
        assert box.damage is not None


@pytest.mark.parametrize("content", [b"", b"no database at all", b"\0" * 8192])
def test_a_file_that_is_no_outbox_does_not_stop_the_start(tmp_path: Path, content: bytes):
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "outbox.sqlite").write_bytes(content)
    with outbox(tmp_path) as box:
        box.put([event(1)])
    with outbox(tmp_path) as box:
        assert bodies(box, ItemKind.EVENT) == [event(1).body]


def test_no_damage_stops_a_start_or_brings_wrong_bytes(tmp_path: Path):
    dice = random.Random(7)
    path = write(tmp_path / "sound", ITEMS, at=NOW)
    sound = path.read_bytes()
    for number in range(25):
        data = bytearray(sound)
        for _ in range(dice.choice([1, 10, 100])):
            data[dice.randrange(len(data))] = dice.randrange(256)
        folder = tmp_path / str(number)
        (folder / "state").mkdir(parents=True, mode=0o700)
        (folder / "state" / "outbox.sqlite").write_bytes(data)
        with outbox(folder) as box:
            assert set(bodies(box, ItemKind.EVENT)) <= set(BODIES)
            box.put([event(9_999_999)])


# It takes the outbox of before over.
KILLED_START = """
from tests.support.outbox.outboxes import outbox

STEPS = ("os.rename", "os.remove", "sqlite3.connect")

def run(folder):
    outbox(folder).close()
"""


def test_a_start_that_is_killed_meanwhile_neither_loses_nor_doubles(tmp_path: Path):
    counts = "INSERT INTO counts VALUES('delivered', 41)"
    write(tmp_path / "as it was" / "state", ITEMS, at=NOW, statements=[counts])
    with killed_runs(KILLED_START) as run:
        for step in range(1, 100):
            folder = tmp_path / str(step)
            shutil.copytree(tmp_path / "as it was", folder)
            code, _ = run(folder, step)
            assert code in {0, -signal.SIGKILL}
            assert deliver_all(folder) == BODIES, step
            with outbox(folder) as box:
                assert totals(box).counts["delivered"] == 41 + len(ITEMS), step
            assert not list((folder / "state").glob("outbox.sqlite*[!k]"))
            if code == 0:
                break
    assert step > 10
