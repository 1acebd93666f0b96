"""The tray on a terminal: what stands where, and what a small screen shows first."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agent.cli.provision.tray_table import Below, drawn
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.tray import Tray
from tests.support.provisioning.plugged_boards import place, plugged

NOTHING = Below()


def tray_of(outcomes: dict[str, str], layout: tuple[int, int] | None = None) -> Tray:
    """Return a tray; the outcome "" is a board at work, "-" an empty slot."""
    tray = Tray(layout)
    places = {name: place(name, number) for number, name in enumerate(outcomes)}
    tray.know(places.values())
    tray.look(plugged(*(places[name] for name in outcomes if outcomes[name] != "-")))
    for name, outcome in outcomes.items():
        if outcome == "-":
            continue
        tray.begin(places[name], 0.0)
        if outcome:
            kind, _, reason = outcome.partition(": ")
            tray.end(Outcome(location=places[name], outcome=kind, step="key", reason=reason), 4.2)
    return tray


def shown(
    tray: Tray, width: int = 80, height: int | None = None, below: Below = NOTHING
) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width).print(drawn(tray, 7.0, width, height, below))
    return text.getvalue().splitlines()


def test_boards_stand_in_the_order_of_their_slots_with_state_step_time_and_result() -> None:
    tray = tray_of({"A10": "", "B1": "done", "A2": "failed: no answer", "A1": "-"})
    assert shown(tray, height=24) == [
        "4 slots, 1 in need of a hand  1 FAIL  1 work  1 PASS  1 empty",
        "slot         step  time   result",
        "A1    empty",
        "A2    FAIL   key   4.2 s  no answer",
        "A10   work         7.0 s",
        "B1    PASS   key   4.2 s  done",
    ]


def test_a_long_reason_takes_no_room_from_the_other_columns() -> None:
    lines = shown(tray_of({"A1": "refused: " + "a reason " * 20, "A2": ""}), width=60)
    assert lines[2].startswith("A1    FAIL  key   4.2 s  refused")
    assert lines[2].endswith("…")
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 60)])
def test_of_64_slots_all_are_seen_and_those_that_need_a_hand_are_said_first(
    width: int, height: int
) -> None:
    names = [f"{row}{column}" for row in "ABCDEFGH" for column in range(1, 9)]
    outcomes = dict.fromkeys(names, "done") | {
        "B6": "refused: old firmware", "E3": "failed: no answer", "D1": "busy: ModemManager",
        "H1": "", "H8": "-",
    }  # fmt: skip
    below = Below("double: label L1 is that of the board in A1", True, "scan the label of A2: L")
    lines = shown(tray_of(outcomes, (8, 8)), width, height, below)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert lines[0] == ("64 slots, 3 in need of a hand  2 FAIL  1 BUSY  1 work  59 PASS  1 empty")
    assert lines[1].split()[:4] == ["A1", "PASS", "A2", "PASS"]
    assert lines[2].split()[10:12] == ["B6", "FAIL"]
    assert [line.split()[0] for line in lines[9:14]] == ["slot", "B6", "E3", "D1", "H1"]
    assert lines[-2:] == [below.said, below.prompt]


def test_where_too_many_need_a_hand_it_says_how_many_more() -> None:
    outcomes = {f"A{number}": "failed: x" for number in range(1, 65)}
    lines = shown(tray_of(outcomes), 80, 24)
    assert len(lines) < 24
    assert [line for line in lines if line.startswith("and ")] != []
    every = shown(tray_of(outcomes), 80)
    assert len([line for line in every if "FAIL  key" in line]) == 64


def test_names_that_are_too_long_for_a_map_leave_the_room_to_the_boards() -> None:
    outcomes = {f"/tmp/a-long-folder/of-ports/kit{number}": "done" for number in range(64)}
    assert "…" in shown(tray_of(outcomes), 80, 24)[3]
    assert "kit0" in shown(tray_of(outcomes), 80, 24)[2]


def test_what_a_modem_or_a_scanner_said_cannot_move_the_cursor() -> None:
    tray = tray_of({"A1": "refused: x\x1b[2J"})
    tray.ordered()[0].label = "L\x1b[2J"
    text = "\n".join(shown(tray, below=Below("y\x1b[2J", False, "z\x1b[2J")))
    assert "\x1b" not in text
    assert text.count("\\x1b[2J") == 4


def test_states_have_colours_and_words_and_without_colours_the_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def painted() -> str:
        text = io.StringIO()
        Console(file=text, width=80, force_terminal=True, color_system="standard").print(
            drawn(tray_of({"A1": "failed: x", "A2": "done"}), 0.0, 80, 24)
        )
        return text.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;37;41mFAIL" in painted()
    assert "\x1b[32mPASS" in painted()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in painted()
