"""The live table of the bench: what stands where, and what a small screen leaves out."""

from __future__ import annotations

import io

from rich.console import Console

from agent.cli.provision.run_progress import Row, drawn, fitting, next_step
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.running.outcome import Outcome


def row(slot: str, outcome: str = "", reason: str = "") -> Row:
    place = BoardLocation("", "", slot, f"/dev/{slot}")
    code = 0 if outcome == "done" else 4
    ended = Outcome(location=place, outcome=outcome, step="key", exit=code, reason=reason)
    return Row(place, step="key", began=0.0, outcome=ended if outcome else None)


def lines_of(rows: list[Row], width: int = 80, height: int | None = None) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width).print(drawn(rows, height))
    return text.getvalue().splitlines()


def test_boards_stand_in_the_order_of_their_slots_however_they_came() -> None:
    shown = lines_of([row("A10"), row("B1"), row("A2", "done"), row("A1")])
    assert [line.split()[0] for line in shown[1:5]] == ["A1", "A2", "A10", "B1"]
    assert shown[-1].endswith("1 of 4 boards")


def test_a_long_reason_takes_no_room_from_the_other_columns() -> None:
    shown = lines_of([row("A1", "refused", "a reason " * 20), row("A2")], width=60)
    assert shown[1].startswith("A1     key   ")
    assert shown[1].endswith("…")
    assert max(map(len, shown)) <= 60


def test_where_not_all_fit_those_that_are_done_make_room() -> None:
    rows = [row(f"A{n}", "done" if n < 8 else "") for n in range(16)]
    assert fitting(rows, 24) == rows
    assert [one.location.slot for one in fitting(rows, 14)] == [f"A{n}" for n in range(8, 16)]
    assert "and 8 more" in lines_of(rows, height=14)
    assert len(fitting([row(f"A{n}") for n in range(16)], 10)) == 6
    assert fitting(rows, None) == rows


def test_what_a_modem_said_cannot_move_the_cursor() -> None:
    [line] = [one for one in lines_of([row("A1", "refused", "x\x1b[2J")]) if "x" in one]
    assert "\x1b" not in line
    assert "\\x1b[2J" in line


def test_a_rerun_is_advised_where_it_helps_and_nowhere_else() -> None:
    refused, failed = row("A1", "refused").outcome, row("A2", "failed").outcome
    assert refused is not None
    assert failed is not None
    assert next_step([refused], cut_off=False) == "what `try` says of each board"
    assert next_step([refused, failed], cut_off=False).startswith("the same command again")
    assert next_step([refused], cut_off=True).startswith("the same command again")
