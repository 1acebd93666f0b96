"""A key per board and tag, a record of each run, and a number for each change."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_PAGE = 1000
_OF_THE_KEY = ("public_key", "key_digest", "certificate", "registered_key", "registered_as",
               "request_id")  # fmt: skip
_TABLES = ("boards", "keys", "runs", "steps")
_LARGEST_TAG = 2**31 - 1
_LONGEST_TAG = 10


def upgrade() -> None:
    """Make two tables, move the keys, and number everything that is there."""
    shared = op.get_bind().dialect.name == "postgresql"
    _make_tables()
    _add_columns()
    if not shared:
        _write_times_with_their_zone()
    _take_over_boards()
    _mark_doubles()
    with op.batch_alter_table("boards") as boards:
        for name in _OF_THE_KEY:
            boards.drop_column(name)
    op.create_index("ix_boards_device_id", "boards", ["device_id"])
    op.create_index("ix_steps_run", "steps", ["run"])
    _number_changes()
    for table in _TABLES:
        op.create_index(f"ix_{table}_change", table, ["change"], unique=True)
    for statement in _POSTGRESQL if shared else _SQLITE:
        op.get_bind().exec_driver_sql(statement)


def _make_tables() -> None:
    text, name, at = sa.Text, sa.String(128), sa.DateTime(timezone=True)
    op.create_table(
        "runs",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, index=True),
        sa.Column("imei", sa.String(16), nullable=False),
        sa.Column("device_id", name, nullable=False, index=True),
        sa.Column("serial", sa.String(64), nullable=False),
        sa.Column("usb_place", name, nullable=False),
        sa.Column("slot", sa.String(64), nullable=False),
        sa.Column("port", text, nullable=False),
        sa.Column("station", name, nullable=False),
        sa.Column("operator", text, nullable=False),
        sa.Column("lot", text, nullable=False),
        sa.Column("product", text, nullable=False),
        sa.Column("cellagent", sa.String(32), nullable=False),
        sa.Column("firmware", sa.String(64), nullable=False),
        sa.Column("security_tag", sa.Integer),
        sa.Column("began_at", at, nullable=False, index=True),
        sa.Column("ended_at", at),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("step", sa.String(32), nullable=False),
        sa.Column("exit", sa.Integer),
        sa.Column("reason_code", sa.String(32), nullable=False),
        sa.Column("reason", text, nullable=False),
        sa.Column("consent", text, nullable=False),
        sa.Column("writes", sa.Integer, nullable=False),
        sa.Column("timings", text, nullable=False),
        sa.Column("change", sa.BigInteger, nullable=False, server_default="0"),
    )
    under_way = sa.text("outcome = 'unfinished'")
    op.create_index("ix_runs_under_way", "runs", ["uuid"],
                    postgresql_where=under_way, sqlite_where=under_way)  # fmt: skip
    op.create_table(
        "keys",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("uuid", sa.String(36), sa.ForeignKey("boards.uuid"), nullable=False, index=True),
        sa.Column("security_tag", sa.Integer),
        sa.Column("public_key", text, nullable=False),
        sa.Column("key_digest", sa.String(64), nullable=False),
        sa.Column("certificate", text, nullable=False),
        sa.Column("certificate_serial", sa.String(64), nullable=False),
        sa.Column("registered_key", sa.String(64), nullable=False),
        sa.Column("registered_as", sa.String(192), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("made_at", at, nullable=False),
        sa.Column("run", sa.String(36)),
        sa.Column("retired_at", at),
        sa.Column("retired_because", text, nullable=False),
        sa.Column("change", sa.BigInteger, nullable=False, server_default="0"),
    )
    live = sa.text("retired_at IS NULL")
    op.create_index("ix_keys_live", "keys", ["uuid", "security_tag"], unique=True,
                    postgresql_where=live, sqlite_where=live)  # fmt: skip


def _add_columns() -> None:
    for column in (
        sa.Column("last_outcome", sa.String(16), nullable=False, server_default=""),
        sa.Column("conflict", sa.Text, nullable=False, server_default=""),
        sa.Column("made_at", sa.DateTime(timezone=True)),
        sa.Column("made_station", sa.String(128), nullable=False, server_default=""),
        sa.Column("made_run", sa.String(36)),
        sa.Column("change", sa.BigInteger, nullable=False, server_default="0"),
    ):
        op.add_column("boards", column)
    op.add_column("steps", sa.Column("run", sa.String(36)))
    op.add_column("steps", sa.Column("change", sa.BigInteger, nullable=False, server_default="0"))


def _write_times_with_their_zone() -> None:
    for table, column in (("boards", "updated_at"), ("steps", "at")):
        op.get_bind().exec_driver_sql(
            f"UPDATE {table} SET {column} = replace({column}, ' ', 'T') || '+00:00' "  # noqa: S608
            f"WHERE {column} NOT LIKE '%+00:00'"
        )


def _take_over_boards() -> None:
    """Move the key of each board, and say of each whether, when and where it was made."""
    bind, after = op.get_bind(), ""
    while True:
        boards = bind.execute(
            sa.text("SELECT * FROM boards WHERE uuid > :after ORDER BY uuid LIMIT :page"),
            {"after": after, "page": _PAGE},
        )
        page = [dict(row) for row in boards.mappings()]
        if not page:
            return
        notes = bind.execute(
            sa.text(
                "SELECT uuid, at, station, step, state, detail FROM steps "
                "WHERE uuid >= :first AND uuid <= :last AND step IN ('key', 'register', 'proof') "
                "ORDER BY uuid, id"
            ),
            {"first": page[0]["uuid"], "last": page[-1]["uuid"]},
        )
        listed = [dict(note) for note in notes.mappings()]
        of_board = {
            uuid: list(rows) for uuid, rows in groupby(listed, key=lambda note: note["uuid"])
        }
        keys, made = [], []
        for board in page:
            known = of_board.get(board["uuid"], [])
            board["outcome"] = board["outcome"] or "unfinished"  # the first ones had no word for it
            made.append(
                {"uuid": board["uuid"], "last_outcome": board["outcome"], **_made(board, known)}
            )
            if board["public_key"]:
                keys.append(_key(board, known))
        if keys:
            bind.execute(sa.text(_insert("keys", keys[0])), keys)
        bind.execute(
            sa.text(
                "UPDATE boards SET last_outcome = :last_outcome, outcome = :outcome, "
                "made_at = :made_at, made_station = :made_station WHERE uuid = :uuid"
            ),
            made,
        )
        after = page[-1]["uuid"]


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


def _mark_doubles() -> None:
    """Mark boards that have one device id, each with the names of the others."""
    bind = op.get_bind()
    doubles = bind.execute(
        sa.text(
            "SELECT device_id, uuid, imei, made_station FROM boards WHERE device_id IN ("
            "SELECT device_id FROM boards WHERE device_id <> '' "
            "GROUP BY device_id HAVING count(*) > 1) ORDER BY device_id, uuid"
        )
    )
    marks = []
    for device_id, rows in groupby(doubles.all(), key=lambda row: str(row[0])):
        boards = list(rows)
        for _, uuid, *_ in boards:
            others = [
                f"{other} (IMEI {imei}{f', made at {station}' if station else ''})"
                for _, other, imei, station in boards
                if other != uuid
            ]
            text = f"device id {device_id} is also that of {', '.join(others)}"
            marks.append({"uuid": uuid, "text": text})
    if marks:
        bind.execute(sa.text("UPDATE boards SET conflict = :text WHERE uuid = :uuid"), marks)


def _insert(table: str, row: Mapping[str, object]) -> str:
    values = ", ".join(f":{name}" for name in row)
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({values})"  # noqa: S608


def _number_changes() -> None:
    """Give what is there its numbers: boards by their last change, then keys, then steps."""
    bind, number = op.get_bind(), 0
    for table, key, order in (
        ("boards", "uuid", "updated_at, uuid"),
        ("keys", "id", "id"),
        ("steps", "id", "id"),
    ):
        bind.exec_driver_sql(
            f"CREATE TEMPORARY TABLE numbers AS SELECT {key} AS place, "  # noqa: S608
            f"row_number() OVER (ORDER BY {order}) AS number FROM {table}"
        )
        bind.exec_driver_sql("CREATE UNIQUE INDEX ix_numbers ON numbers (place)")
        bind.exec_driver_sql(
            f"UPDATE {table} SET change = {number} + "  # noqa: S608
            f"(SELECT number FROM numbers WHERE place = {table}.{key})"
        )
        number += int(bind.exec_driver_sql("SELECT count(*) FROM numbers").scalar_one())
        bind.exec_driver_sql("DROP TABLE numbers")
    if bind.dialect.name == "postgresql":
        bind.exec_driver_sql(f"CREATE SEQUENCE ledger_change START {number + 1}")
    else:
        bind.exec_driver_sql("CREATE TABLE ledger_change (last INTEGER NOT NULL)")
        bind.exec_driver_sql(f"INSERT INTO ledger_change VALUES ({number})")  # noqa: S608


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
