"""What is known of the rows in memory, against the rows themselves."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.outbox.item_state import ItemEvent
from agent.outbox.salvage import open_file
from agent.outbox.schema import row_crc
from agent.outbox.tables import OutboxTables

LANES = [("kit", "chunk"), ("kit", "event"), ("other", "chunk")]
steps = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from(LANES), st.binary(max_size=20)),
    st.tuples(st.sampled_from(["delete", "park", "retry", "clear"]), st.lists(st.integers(1, 12))),
    st.tuples(st.just("doubt"), st.sampled_from(LANES), st.integers(1, 12)),
    st.tuples(st.just("flush")),
)


def run(tables: OutboxTables, step: tuple) -> None:  # type: ignore[type-arg]
    match step:
        case "insert", (device, kind), body:
            number = tables.last_id = tables.last_id + 1
            crc = row_crc(kind, device, 1.0, "", body)
            tables.insert([(number, kind, device, number, 1.0, 1.0, "", body, crc)])
        case "delete", ids:
            tables.move(tables.allowing(ItemEvent.REMOVED, ids), ItemEvent.REMOVED)
        case "park", ids:
            tables.move(tables.allowing(ItemEvent.DAMAGED, ids), ItemEvent.DAMAGED, "damaged")
        case "retry", ids:
            tables.move(tables.allowing(ItemEvent.RETRIED, ids), ItemEvent.RETRIED)
        case "clear", ids:
            tables.clear_in_doubt(ids)
        case "doubt", lane, last:
            tables.mark_in_doubt(lane, 1, last)
        case ("flush",):
            tables.flush()


def known(tables: OutboxTables) -> tuple[object, ...]:
    return (
        +tables.waiting,
        tables.parked,
        tables.size,
        tables.total,
        tables.last_id,
        tables.in_doubt,
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(steps, max_size=25))
def test_the_counts_in_memory_are_those_of_the_rows(todo):
    with tempfile.TemporaryDirectory() as folder:
        connection, _ = open_file(Path(folder) / "outbox.sqlite", 0.0)
        tables = OutboxTables(connection)
        connection.execute("BEGIN")
        for step in todo:
            run(tables, step)
        tables.flush()
        for lane, count in (+tables.waiting).items():
            first = min(
                number
                for number, device, kind in connection.execute(
                    "SELECT id, device, kind FROM items WHERE state = 0"
                )
                if (device, kind) == lane
            )
            assert count
            assert tables.first_id[lane] <= first
        assert known(tables) == known(OutboxTables(connection))
        connection.execute("COMMIT")
        connection.close()


def test_rows_that_were_not_written_are_gone_after_a_rollback():
    with tempfile.TemporaryDirectory() as folder:
        connection, _ = open_file(Path(folder) / "outbox.sqlite", 0.0)
        tables = OutboxTables(connection)
        before = known(tables)
        connection.execute("BEGIN")
        run(tables, ("insert", LANES[0], b"x"))
        connection.execute("ROLLBACK")
        tables.reload()
        assert known(tables) == before
        connection.close()
