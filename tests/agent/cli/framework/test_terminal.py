"""Bars and tables for people."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.framework.terminal import (
    TableWriter,
    aligned,
    ask,
    bar,
    ended_by_ctrl_c,
    folded,
    interrupted_already,
    progress_bar,
    wrapped,
)
from agent.errors import UsageError
from tests.support.commands.on_a_terminal import on_a_terminal


@pytest.mark.parametrize(
    ("value", "drawn"),
    [(None, "····"), (True, "····"), (-140, "····"), (-200, "····"), (-105, "██··"), (0, "████")],
)
def test_a_bar_is_as_wide_whatever_it_shows(value: object, drawn: str) -> None:
    assert bar(value, -140, -70, 4) == drawn


@given(what=st.text(), total=st.integers(1), share=st.floats(0, 1))
def test_a_progress_bar_fits_the_terminal_and_is_full_only_at_the_end(
    what: str, total: int, share: float
) -> None:
    done = min(int(total * share), total)
    line = progress_bar(what, done, total)
    assert ("[########################] 100 %" in line) is (done == total)
    assert len(progress_bar(what, done, total)) <= 79


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "lines",
    [
        ["  try: the time of a network; else", "  AT+CCLK=TIME sets it"],
        ["ok  files     config.toml, secrets.toml,", "              state of it"],
        ["there is no key yet:", "`cellagent config set api_key` asks"],
        ["  3. key   /a/path/that/is/longer/than/the/line/is"],
        ["a line", "", "as it was given,  in columns", ""],
    ],
)
def test_a_line_for_people_is_broken_between_words_below_its_last_column(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    whole = "\n".join(lines) if "" in lines else " ".join([lines[0], *map(str.strip, lines[1:])])
    assert folded(whole, _Terminal()) == "\n".join(lines)
    assert folded(whole, io.StringIO()) == whole


@given(
    text=st.lists(st.sampled_from(["a", "word", "`cellagent ports`", "/a/path", "  ", "\n"])),
    width=st.integers(4, 60),
)
def test_what_is_broken_into_lines_says_the_same_in_the_same_order(
    text: list[str], width: int
) -> None:
    line = " ".join(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        shown = folded(line, _Terminal())
    assert shown.split() == line.split()
    assert line.count("`cellagent ports`") == shown.count("`cellagent ports`")


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
def test_no_word_of_a_message_is_cut_by_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    begin = "from agent.cli.framework import command, logs; import logging; logs.log_to_stderr(0)"
    text = "what the boards attest is not checked: the key `cellagent config show` has none of it"
    for call in (f"command.say({text!r})", f"command.note({text!r})", f"logging.warning({text!r})"):
        code, written = on_a_terminal("-c", f"{begin}\n{call}")
        lines = written.decode().split("\r\n")
        assert (code, len(lines)) == (0, 3)
        assert max(map(len, lines)) <= 80
        assert " ".join(lines).removeprefix("cellagent: ").strip() == text


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("pass", "  \x1b[31mNO\x1b[m  sim  \\x1b[1m|plain NO"),
        ("os.environ['NO_COLOR'] = '1'", "  NO  sim  \\x1b[1m|plain NO"),
        ("os.environ['TERM'] = 'dumb'", "  NO  sim  \\x1b[1m|plain NO"),
    ],
)
def test_the_mark_of_a_line_is_in_colour_and_nothing_that_came_with_it(
    setting: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    begin = (
        "import os; from agent.cli.framework.terminal import say_marked\n"
        f"from agent.cli.framework.safe_text import guard_output; guard_output(); {setting}"
    )
    code, written = on_a_terminal("-c", f"{begin}\nsay_marked('  NO  sim  \\x1b[1m', 'plain NO')")
    assert (code, "|".join(written.decode().split("\r\n")[:2])) == (0, shown)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
@pytest.mark.parametrize(("terminal", "live"), [("xterm", b"True"), ("dumb", b"False")])
def test_a_terminal_that_cannot_go_back_gets_lines_and_no_live_table(
    terminal: str, live: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", terminal)
    ask = "import sys; from agent.cli.framework.terminal import redraws; print(redraws(sys.stdout))"
    assert on_a_terminal("-c", ask)[1].strip() == live


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
def test_progress_is_drawn_over_itself_and_wiped_at_the_end() -> None:
    steps = "('x', 0, None), ('x', 5, None), ('x', 1, 2), ('x', 2, 2)"
    begin = "from agent.cli.framework.terminal import show_progress as show"
    code, shown = on_a_terminal("-c", f"{begin}\nfor step in ({steps}): show(*step)")
    assert code == 0
    drawn = [part.strip() for part in shown.decode().split("\r")]
    assert drawn == ["", "x 0", "x 5", "x [############            ]  50 %", "", ""]


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
def test_the_import_of_a_long_log_shows_how_far_it_is(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_text("AT\nOK\n" * 1500)
    command = ("-m", "agent", "modem", "import", str(log), "--output", str(tmp_path / "out"))
    code, shown = on_a_terminal(*command)
    assert code == 0
    drawn = [part.strip() for part in shown.decode().split("\r") if "%" in part]
    assert drawn == [
        "reading [###############         ]  66 %",
        "redacting [################        ]  66 %",
    ]
    log.write_text("AT\nOK\n")
    (tmp_path / "out").unlink()
    assert b"%" not in on_a_terminal(*command)[1]


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("2026-11-22T23:50:29.373118+00:00", "2026-11-22T23:50:29Z"),
        ("2026-11-22T23:50:29Z", "2026-11-22T23:50:29Z"),
        ("2026-11-22T23:50:29.5+02:00", "2026-11-22T23:50:29.5+02:00"),
        ("at 2026-11-22T23:50:29.5Z", "at 2026-11-22T23:50:29.5Z"),
    ],
)
def test_a_time_in_a_table_is_told_to_the_second(
    cell: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = TableWriter("when")
    table.add(cell)
    table.flush()
    assert capsys.readouterr().out.splitlines() == ["when", shown]


SPINNER = re.compile(r"\r([|/\\-] [^\r]* \d+ s *)\r")
TURNS_AT_ONCE = (
    "import sys; from agent.cli.framework import terminal; terminal._TURN_S = 0\n"
    "from agent.cli.main import main; main()"
)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
@pytest.mark.parametrize(
    "words",
    [
        "modem check --port virtual:",
        "modem why --port virtual:",
        "scan cells --port virtual:",
        "doctor --port virtual:",
        "provision plan virtual: --registration none --no-proof",
    ],
)
def test_who_waits_at_a_terminal_sees_so_and_a_program_does_not(
    words: str, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, shown = on_a_terminal("-c", TURNS_AT_ONCE, *words.split())
    waits = SPINNER.findall(shown.decode())
    assert waits
    assert {len(each) for each in waits} == {39}
    _, shown = on_a_terminal("-c", TURNS_AT_ONCE, *words.split(), "--json")
    assert not SPINNER.findall(shown.decode())


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
@pytest.mark.parametrize(
    ("words", "waits_for"),
    [
        ("device list", r"waiting for 127\.0\.0\.1:\d+"),
        ("observe whoami", r"waiting for 127\.0\.0\.1:\d+"),
        ("device wait nrf-352656109000001 --transform true", "waiting for nrf-352656109000001"),
    ],
)
async def test_who_waits_for_a_service_sees_for_which_and_a_program_does_not(
    standin_profile: str, words: str, waits_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that says nothing is given up after 25 s, and asked four times."""
    monkeypatch.setenv("COLUMNS", "80")
    run = partial(asyncio.to_thread, on_a_terminal, "-c", TURNS_AT_ONCE, *words.split())
    _, shown = await run()
    waits = {each[2:].partition(",")[0] for each in SPINNER.findall(shown.decode())}
    assert len(waits) == 1, "where two wait, the outer one says for what"
    assert re.fullmatch(waits_for, waits.pop())
    _, shown = await run("--json")
    assert not SPINNER.findall(shown.decode())


def test_a_long_table_is_written_as_it_comes_with_its_head_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = TableWriter("name", "said")
    for number in range(99):
        table.add(number, None if number else "two\nlines")
    assert capsys.readouterr().out == ""
    table.add(99, "")
    head, first, *rest = capsys.readouterr().out.splitlines()
    assert (head, first) == ("name  said", "0     two lines")
    assert rest == [f"{number:<4}  -" for number in range(1, 100)]
    table.flush()
    table.add("last", "x")
    table.flush()
    assert capsys.readouterr().out == "last  x\n"
    TableWriter("name").flush()
    assert capsys.readouterr().out == "name\n", "an empty one has its head"


def test_cells_stand_in_columns_and_numbers_end_alike() -> None:
    rows = [("board", "tries"), ("a", "1"), ("bc", "10")]
    assert list(aligned(rows, {1})) == ["board  tries", "a          1", "bc        10"]
    assert list(aligned(rows)) == ["board  tries", "a      1", "bc     10"]
    assert list(aligned([])) == []


def test_what_is_wrapped_keeps_its_commands_whole() -> None:
    text = "first do `cellagent config set kit.port PORT`, or else /a/long-path/to/some-where-it-is"
    assert wrapped(text, "  try: ", "    ", 40) == [
        "  try: first do",
        "    `cellagent config set kit.port PORT`,",
        "    or else",
        "    /a/long-path/to/some-where-it-is",
    ]


def test_what_cannot_be_undone_is_not_done_where_nobody_can_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        ask("Delete all?", yes=True)
        with pytest.raises(UsageError, match="nobody is there to ask") as refused:
            ask("Delete all?", yes=False)
    assert refused.value.hint == "`--yes` does it without asking"


def test_ctrl_c_that_came_before_a_question_ends_it_too() -> None:
    before = signal.signal(signal.SIGINT, interrupted_already)
    try:
        with pytest.raises(KeyboardInterrupt), ended_by_ctrl_c():
            raise AssertionError("it was asked")
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_question_and_is_as_it_was_after_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt), ended_by_ctrl_c():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
