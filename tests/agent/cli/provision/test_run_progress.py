"""What is advised of a board, and at the end of a run."""

from __future__ import annotations

import io
import json
import logging
import shlex
import sys

import click
import pytest
from msgspec.structs import replace

from agent.cli.framework.command import note
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.session import Session
from agent.cli.provision import run
from agent.cli.provision.run_progress import BenchView, next_step
from agent.config.write import write_profile
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.tray import Tray
from tests.support.provisioning.plugged_boards import place, plugged


def ended(outcome: str, hint: str = "") -> Outcome:
    return Outcome(location=place("A1"), outcome=outcome, step="key", exit=4, hint=hint)


def test_a_rerun_is_advised_where_it_helps_and_nowhere_else() -> None:
    refused, failed = ended("refused"), ended("failed")
    assert next_step([refused], cut_off=False) == "what `try` says of each board"
    assert next_step([refused, failed], cut_off=False).startswith("the same command again")
    assert next_step([refused], cut_off=True).startswith("the same command again")
    told = next_step([ended("failed", "`--set-clock` sets it")], cut_off=False)
    assert told.startswith("what `try` says of each board, then the same command again")


@pytest.mark.parametrize("page", [["--page"], ["--page", "127.0.0.1:0"], ["--page=:0"], []])
def test_what_is_allowed_to_one_board_is_not_for_all_that_follow_it_on_its_port(
    monkeypatch: pytest.MonkeyPatch, page: list[str]
) -> None:
    typed = ["/a", "/b", "--watch", *page, "--page-control", "--scan", "--lot", "7"]
    monkeypatch.setattr(sys, "argv", ["cellagent", "provision", "run", *typed])
    hint = pasteable_hint("`--rekey` allows it", "", Session(), ["/a"], {"/b"})
    assert hint == "`cellagent provision run /a --lot 7 --rekey` allows it"
    scanned = pasteable_hint("`--relabel L`", "", Session(), ["/a"], {"/b"})
    assert "--watch" in scanned
    assert "--scan" in scanned


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("--all --expect 3 --lot 7", "--lot 7 --rekey /a"),
        ("--expect=3 --all", "--rekey /a"),
        ("--page --quiet --all", "--quiet --rekey /a"),
        ("--page :0 --quiet /a", "--quiet /a --rekey"),
        ("/a --port /b", "/a --rekey"),
        ("--port=/b /a", "/a --rekey"),
        ("--port /a /b", "--rekey /a"),
        ("--lot 7 -- /a /b", "--lot 7 --rekey -- /a"),
    ],
)
def test_what_was_typed_for_all_boards_becomes_a_command_for_this_one(
    monkeypatch: pytest.MonkeyPatch, typed: str, whole: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["cellagent", "provision", "run", *typed.split()])
    hint = pasteable_hint("`--rekey` allows it", "", Session(), ["/a"], {"/b"})
    assert hint == f"`cellagent provision run {whole}` allows it"


@pytest.mark.parametrize(
    ("typed", "port", "ports", "others", "whole"),
    [
        # --port, which names a kit, is one more board
        ("/b", "left", ["/b"], ["/a"], "/b --rekey"),
        ("/b", "left", ["/a"], ["/b"], "--rekey /a"),
        # all that were there: others may be by the time that it is pasted
        ("--all", None, ["/a"], [], "--rekey /a"),
        # what several need is for these, and for no other
        ("--all --lot 7", None, ["/a", "/b"], ["/c"], "--lot 7 --rekey /a /b"),
        ("/a /b /c", None, ["/a", "/b"], ["/c"], "/a /b --rekey"),
        ("--all", None, ["/a", "/b"], [], "--all --rekey"),
    ],
)
def test_what_is_allowed_is_allowed_to_the_boards_that_are_meant_alone(
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    port: str | None,
    ports: list[str],
    others: list[str],
    whole: str,
) -> None:
    words = [*typed.split(), *(["--port", port] if port else [])]
    monkeypatch.setattr(sys, "argv", ["cellagent", "provision", "run", *words])
    hint = pasteable_hint("`--rekey` allows it", "", Session(port=port), ports, others)
    assert hint == f"`cellagent provision run {whole}` allows it"


def test_a_board_that_was_typed_as_a_kit_of_the_table_is_meant_by_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_profile("lab", {"kits": {"left": {"port": "/a"}, "right": {"port": "/b"}}}, {})
    session = Session(profile_name="lab")
    assert session.loaded.name == "lab"
    typed = ["provision", "run", "left", "right", "--profile", "lab"]
    monkeypatch.setattr(sys, "argv", ["cellagent", *typed])
    hint = pasteable_hint("`--rekey` allows it", "", session, ["/a"], {"/b"})
    assert hint == "`cellagent provision run left --profile lab --rekey` allows it"


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        ("left right --profile right", "left --profile right --rekey"),
        ("left right --lot=right --profile right", "left --lot=right --profile right --rekey"),
        ("--all --lot left --profile right", "--lot left --profile right --rekey /a"),
    ],
)
def test_the_value_of_an_option_is_no_board_though_a_kit_has_that_name(
    monkeypatch: pytest.MonkeyPatch, typed: str, whole: str
) -> None:
    write_profile("right", {"kits": {"left": {"port": "/a"}, "right": {"port": "/b"}}}, {})
    session = Session(profile_name="right")
    assert session.loaded.name == "right"
    monkeypatch.setattr(sys, "argv", ["cellagent", "provision", "run", *typed.split()])
    with click.Context(run.command).scope():
        hint = pasteable_hint("`--rekey` allows it", "", session, ["/a"], {"/b"})
    assert hint == f"`cellagent provision run {whole}` allows it"


def test_what_two_of_three_boards_need_is_allowed_to_these_two(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cellagent", "provision", "run", "--all"])
    tray, places = Tray(), [place(f"A{number}", number) for number in (1, 2, 3)]
    tray.look(plugged(*places))
    view = BenchView(Session(), tray)
    refused = ended("refused", "`--rekey` allows it")
    view.outcomes = [replace(refused, location=each) for each in places[:2]]
    view._show_failures()
    of_two = " ".join(each.port for each in places[:2])
    assert f"try: `cellagent provision run --rekey {of_two}` allows it" in capsys.readouterr().err


def test_the_hint_in_json_is_a_command_for_this_board_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cellagent", "provision", "run", "--all", "--json"])
    tray = Tray()
    slot, _other = tray.look(plugged(place("A1"), place("A2", 2)))
    BenchView(Session(json=True), tray).end(ended("refused", "`--rekey` allows it"), slot)
    hint = json.loads(capsys.readouterr().out)["try"]
    port = place("A1").port
    assert hint == f"`cellagent provision run --json --rekey {port}` allows it"


def test_what_is_typed_already_of_an_option_that_may_be_repeated_is_not_said_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed = ["cellagent", "provision", "run", "/a", "--replace", "1:1", "--replace", "1:10"]
    monkeypatch.setattr(sys, "argv", typed)
    hint = pasteable_hint("`--replace 1:1 --replace 2:1` allows it", "", Session())
    assert hint == f"`{shlex.join(typed)} --replace 2:1` allows it"


def test_a_board_that_still_waits_at_the_end_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    tray = Tray()
    tray.know([place("A1")])
    view = BenchView(Session(), tray, watches=True)
    assert view.summary() == 3
    assert "no board was found: `cellagent ports`" in capsys.readouterr().err
    tray.look(plugged(place("A1")))
    assert view.summary() == 3
    assert capsys.readouterr().err == "no board was begun\n"


class Terminal(io.StringIO):
    """What a person reads."""

    def isatty(self) -> bool:
        return True


def shown_on(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own have files
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    return shown


def test_a_result_is_in_the_file_that_was_named_also_where_a_table_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`provision run ... > tray.txt` at a terminal left the file empty."""
    terminal = shown_on(monkeypatch)
    monkeypatch.setattr(sys, "stdout", file := io.StringIO())
    tray = Tray()
    [slot] = tray.look(plugged(place("A1")))
    with BenchView(Session(), tray) as view:
        view.end(ended("refused", "mend it"), slot)
    assert "A1" in file.getvalue()
    assert "refused" in file.getvalue()
    assert "  try: mend it\n" in file.getvalue()
    assert "slot" in terminal.getvalue()


def test_a_command_above_the_table_is_broken_by_the_terminal_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = shown_on(monkeypatch)
    command = f"`cellagent provision run /tmp/kit {' '.join(['--replace 1:2'] * 9)}`"
    tray = Tray()
    tray.look(plugged(place("A1")))
    with BenchView(Session(), tray, watches=True):
        note(f"try: {command} allows it")
        sys.stderr.write("half")
        sys.stderr.write(" a line\n")
        sys.stderr.write("which? ")
        sys.stderr.flush()
        assert "which? \n" in terminal.getvalue()
        sys.stderr.write("the last word")
    assert sys.stderr is terminal
    shown = terminal.getvalue()
    assert f"{command}\n" in shown
    assert "half a line\n" in shown
    assert "A1" in shown[shown.index("the last word\n") :], "the table stands below"
