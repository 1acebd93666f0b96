"""A key per board and tag, a record of each run, and a number for each change."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from agent.provisioning.ledger.backend import Tables

_PAGE = 1000
_OF_THE_KEY = ("public_key", "key_digest", "certificate", "registered_key", "registered_as",
               "request_id")  # fmt: skip
_OF_A_BOARD = ("uuid", "outcome", "station", "updated_at", *_OF_THE_KEY)
_TABLES = ("boards", "keys", "runs", "steps")
_LARGEST_TAG = 2**31 - 1
_LONGEST_TAG = 10


def upgrade(tables: Tables) -> None:
    """Make two tables, move the keys, and number everything that is there."""
    _make_tables(tables)
    _add_columns(tables)
    last = 0 if tables.are_new else _take_over(tables)
    _drop_columns_of_the_key(tables)
    tables.execute("CREATE INDEX ix_boards_device_id ON boards (device_id)", {})
    tables.execute("CREATE INDEX ix_steps_run ON steps (run)", {})
    _count_from(tables, last)
    for table in _TABLES:
        tables.execute(f"CREATE UNIQUE INDEX ix_{table}_change ON {table} (change)", {})
    for statement in _POSTGRESQL if tables.shared else _SQLITE:
        tables.execute(statement, {})


def _make_tables(tables: Tables) -> None:
    for statement in (
        f"""
        CREATE TABLE runs (
            id VARCHAR(36) NOT NULL,
            uuid VARCHAR(36) NOT NULL,
            imei VARCHAR(16) NOT NULL,
            device_id VARCHAR(128) NOT NULL,
            serial VARCHAR(64) NOT NULL,
            usb_place VARCHAR(128) NOT NULL,
            slot VARCHAR(64) NOT NULL,
            port TEXT NOT NULL,
            station VARCHAR(128) NOT NULL,
            operator TEXT NOT NULL,
            lot TEXT NOT NULL,
            product TEXT NOT NULL,
            cellagent VARCHAR(32) NOT NULL,
            firmware VARCHAR(64) NOT NULL,
            security_tag INTEGER,
            began_at {tables.time} NOT NULL,
            ended_at {tables.time},
            outcome VARCHAR(16) NOT NULL,
            step VARCHAR(32) NOT NULL,
            exit INTEGER,
            reason_code VARCHAR(32) NOT NULL,
            reason TEXT NOT NULL,
            consent TEXT NOT NULL,
            writes INTEGER NOT NULL,
            timings TEXT NOT NULL,
            change BIGINT DEFAULT '0' NOT NULL,
            PRIMARY KEY (id)
        )""",
        "CREATE INDEX ix_runs_device_id ON runs (device_id)",
        "CREATE INDEX ix_runs_uuid ON runs (uuid)",
        "CREATE INDEX ix_runs_began_at ON runs (began_at)",
        "CREATE INDEX ix_runs_under_way ON runs (uuid) WHERE outcome = 'unfinished'",
        f"""
        CREATE TABLE keys (
            id {tables.number} NOT NULL,
            uuid VARCHAR(36) NOT NULL,
            security_tag INTEGER,
            public_key TEXT NOT NULL,
            key_digest VARCHAR(64) NOT NULL,
            certificate TEXT NOT NULL,
            certificate_serial VARCHAR(64) NOT NULL,
            registered_key VARCHAR(64) NOT NULL,
            registered_as VARCHAR(192) NOT NULL,
            request_id VARCHAR(64) NOT NULL,
            made_at {tables.time} NOT NULL,
            run VARCHAR(36),
            retired_at {tables.time},
            retired_because TEXT NOT NULL,
            change BIGINT DEFAULT '0' NOT NULL,
            PRIMARY KEY (id),
            FOREIGN KEY(uuid) REFERENCES boards (uuid)
        )""",
        "CREATE INDEX ix_keys_uuid ON keys (uuid)",
        "CREATE UNIQUE INDEX ix_keys_live ON keys (uuid, security_tag) WHERE retired_at IS NULL",
    ):
        tables.execute(statement, {})


def _add_columns(tables: Tables) -> None:
    for table, column in (
        ("boards", "last_outcome VARCHAR(16) DEFAULT '' NOT NULL"),
        ("boards", "conflict TEXT DEFAULT '' NOT NULL"),
        ("boards", f"made_at {tables.time}"),
        ("boards", "made_station VARCHAR(128) DEFAULT '' NOT NULL"),
        ("boards", "made_run VARCHAR(36)"),
        ("boards", "change BIGINT DEFAULT '0' NOT NULL"),
        ("steps", "run VARCHAR(36)"),
        ("steps", "change BIGINT DEFAULT '0' NOT NULL"),
    ):
        tables.execute(f"ALTER TABLE {table} ADD COLUMN {column}", {})


def _take_over(tables: Tables) -> int:
    """Take over what is there, and return the number of its last change."""
    if not tables.shared:
        _write_times_with_their_zone(tables)
    _take_over_boards(tables)
    _mark_doubles(tables)
    return _number_changes(tables)


def _drop_columns_of_the_key(tables: Tables) -> None:
    if tables.shared:
        for name in _OF_THE_KEY:
            tables.execute(f"ALTER TABLE boards DROP COLUMN {name}", {})
        return
    # SQLite drops no column before 3.35: the table is made anew.
    for statement in (
        """
        CREATE TABLE new_boards (
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
            writes INTEGER NOT NULL,
            updated_at DATETIME NOT NULL,
            attestation TEXT DEFAULT ('') NOT NULL,
            last_outcome VARCHAR(16) DEFAULT ('') NOT NULL,
            "conflict" TEXT DEFAULT ('') NOT NULL,
            made_at DATETIME,
            made_station VARCHAR(128) DEFAULT ('') NOT NULL,
            made_run VARCHAR(36),
            change BIGINT DEFAULT '0' NOT NULL,
            PRIMARY KEY (uuid)
        )""",
        """
        INSERT INTO new_boards
            SELECT uuid, imei, device_id, serial, usb_place, slot, firmware, station, outcome,
                reason, writes, updated_at, attestation, last_outcome, "conflict", made_at,
                made_station, made_run, change
            FROM boards""",
        "DROP TABLE boards",
        "ALTER TABLE new_boards RENAME TO boards",
    ):
        tables.execute(statement, {})


def _write_times_with_their_zone(tables: Tables) -> None:
    for table, column in (("boards", "updated_at"), ("steps", "at")):
        tables.execute(
            f"UPDATE {table} SET {column} = replace({column}, ' ', 'T') || '+00:00' "  # noqa: S608
            f"WHERE {column} NOT LIKE '%+00:00'",
            {},
        )


def _take_over_boards(tables: Tables) -> None:
    """Move the key of each board, and say of each whether, when and where it was made."""
    after = ""
    while page := _rows(tables, "boards", _OF_A_BOARD, "uuid > :after ORDER BY uuid LIMIT :page",
                        after=after, page=_PAGE):  # fmt: skip
        after = str(page[-1]["uuid"])
        notes = _rows(
            tables, "steps", ("uuid", "at", "station", "step", "state", "detail"),
            "uuid >= :first AND uuid <= :last AND step IN ('key', 'register', 'proof') "
            "ORDER BY uuid, id",
            first=page[0]["uuid"], last=after,
        )  # fmt: skip
        of_board = {
            uuid: list(rows) for uuid, rows in groupby(notes, key=lambda note: note["uuid"])
        }
        for board in page:
            known = of_board.get(board["uuid"], [])
            board["outcome"] = board["outcome"] or "unfinished"  # the first ones had no word for it
            if board["public_key"]:
                key = _key(board, known)
                tables.execute(_insert("keys", key), key)
            tables.execute(
                "UPDATE boards SET last_outcome = :last_outcome, outcome = :outcome, "
                "made_at = :made_at, made_station = :made_station WHERE uuid = :uuid",
                {"uuid": board["uuid"], "last_outcome": board["outcome"], **_made(board, known)},
            )


def _rows(
    tables: Tables, table: str, columns: Sequence[str], where: str, **values: object
) -> list[dict[str, Any]]:
    query = f"SELECT {', '.join(columns)} FROM {table} WHERE {where}"  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in tables.execute(query, values)]


def _made(board: Mapping[str, Any], notes: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """Return the outcome, and when and where the board was made: as its notes have it.

    A board that a later run found unchanged, or could not finish, was done by the run before, where
    that one registered its key, or proved it. Which run proved a key that was made since is no
    matter: the last `key` counts.
    """
    registered = proven = None
    for note in notes:
        if note["state"] == "done":
            if note["step"] == "key":
                registered = proven = None
            elif note["step"] == "register":
                registered = note
            else:
                proven = note
    reached = board["outcome"] == "done" or proven is not None
    reached = reached or (board["outcome"] == "unchanged" and registered is not None)
    if not reached:
        return {"outcome": board["outcome"], "made_at": None, "made_station": ""}
    last = registered or proven
    at, station = (last["at"], last["station"]) if last else (board["updated_at"], board["station"])
    return {"outcome": "done", "made_at": at, "made_station": station}


def _key(board: Mapping[str, Any], notes: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """Return the key of a board; its tag is that of the note that its last making began with."""
    tag, at, begun = None, board["updated_at"], ""
    for note in notes:
        if note["step"] == "key" and note["state"] == "begun":
            begun = note["detail"]
        elif note["step"] == "key" and note["state"] == "done":
            tag, at = _tag(begun), note["at"]
    return {
        "uuid": board["uuid"],
        "security_tag": tag,
        **{name: board[name] for name in _OF_THE_KEY},
        "certificate_serial": _serial(board["certificate"]),
        "made_at": at,
        "retired_because": "",
    }


def _tag(detail: str) -> int | None:
    """Return the tag of a note, `TAG` or `TAG NAME-OF-A-HOST-KEY`; the first ones had none."""
    digits = detail.partition(" ")[0]
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_TAG):
        return None
    tag = int(digits)
    return tag if tag <= _LARGEST_TAG else None


def _serial(certificate: str) -> str:
    """Return the serial number in hex, as openssl prints it; "" where nothing can be read."""
    if not certificate:
        return ""
    from cryptography import x509

    try:
        digits = f"{x509.load_pem_x509_certificate(certificate.encode()).serial_number:X}"
    except Exception:  # noqa: BLE001 - whatever an old record holds, it is taken over
        return ""
    return digits.zfill(len(digits) + len(digits) % 2)  # whole bytes


def _mark_doubles(tables: Tables) -> None:
    """Mark boards that have one device id, each with the names of the others."""
    doubles = tables.execute(
        "SELECT device_id, uuid, imei, made_station FROM boards WHERE device_id IN ("
        "SELECT device_id FROM boards WHERE device_id <> '' "
        "GROUP BY device_id HAVING count(*) > 1) ORDER BY device_id, uuid",
        {},
    )
    for device_id, rows in groupby(doubles, key=lambda row: str(row[0])):
        boards = list(rows)
        for _, uuid, *_ in boards:
            others = [
                f"{other} (IMEI {imei}{f', made at {station}' if station else ''})"
                for _, other, imei, station in boards
                if other != uuid
            ]
            text = f"device id {device_id} is also that of {', '.join(others)}"
            mark = "UPDATE boards SET conflict = :text WHERE uuid = :uuid"
            tables.execute(mark, {"uuid": uuid, "text": text})


def _insert(table: str, row: Mapping[str, object]) -> str:
    values = ", ".join(f":{name}" for name in row)
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"  # noqa: S608


def _number_changes(tables: Tables) -> int:
    """Give what is there its numbers: boards by their last change, then keys, then steps."""
    number = 0
    for table, key, order in (
        ("boards", "uuid", "updated_at, uuid"),
        ("keys", "id", "id"),
        ("steps", "id", "id"),
    ):
        place = f"{key} AS place, row_number() OVER (ORDER BY {order}) AS number"
        own = f"SELECT number FROM numbers WHERE place = {table}.{key}"  # noqa: S608
        for statement in (
            f"CREATE TEMPORARY TABLE numbers AS SELECT {place} FROM {table}",  # noqa: S608
            "CREATE UNIQUE INDEX ix_numbers ON numbers (place)",
            f"UPDATE {table} SET change = {number} + ({own})",  # noqa: S608
        ):
            tables.execute(statement, {})
        number += int(tables.execute("SELECT count(*) FROM numbers", {})[0][0])
        tables.execute("DROP TABLE numbers", {})
    return number


def _count_from(tables: Tables, last: int) -> None:
    if tables.shared:
        tables.execute(f"CREATE SEQUENCE ledger_change START {last + 1}", {})
    else:
        tables.execute("CREATE TABLE ledger_change (last INTEGER NOT NULL)", {})
        tables.execute("INSERT INTO ledger_change VALUES (:number)", {"number": last})


# One writer: the number after the last one. Not for the update that only sets the number itself.
_SQLITE = [
    f"""CREATE TRIGGER {table}_{event} AFTER {event.upper()} ON {table} {when}
    BEGIN
        UPDATE ledger_change SET last = last + 1;
        UPDATE {table} SET change = (SELECT last FROM ledger_change) WHERE rowid = NEW.rowid;
    END"""  # noqa: S608
    for table in _TABLES
    for event, when in (("insert", ""), ("update", "WHEN NEW.change = OLD.change"))
]
# Many writers, who commit in any order. Each holds, until it has committed, a shared lock that is
# named by a number before its first change: what is below all such locks is final (see
# `Database.first_open_change`). Nobody waits for anybody. One lock, since the server has room for
# some thousands of them.
_POSTGRESQL = [
    """CREATE FUNCTION ledger_number() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('ledger.numbered', true) IS DISTINCT FROM txid_current()::text THEN
            PERFORM pg_advisory_xact_lock_shared(1850885690, nextval('ledger_change')::int);
            PERFORM set_config('ledger.numbered', txid_current()::text, true);
        END IF;
        NEW.change = nextval('ledger_change');
        RETURN NEW;
    END $$""",
    *(
        f"CREATE TRIGGER {table}_change BEFORE INSERT OR UPDATE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION ledger_number()"
        for table in _TABLES
    ),
]
