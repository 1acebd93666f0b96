"""How a command ends by what it returns or raises: its exit code, and what is said of it where."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Callable
from typing import NoReturn

import click
import pytest

from agent.cli.framework.command import (
    OfflineCommand,
    agent_command,
    emit_or_say,
    json_line,
    note,
    run_command_line,
)
from agent.cli.framework.hints import usual_hint
from agent.cli.framework.session import Session
from agent.cli.tree import LazyGroup
from agent.errors import AgentError, RefusedByRule, UsageError
from at.protocol.errors import LinkLost, PortBusy

Work = Callable[[Session], object]


def ended(monkeypatch: pytest.MonkeyPatch, work: Work, *options: str) -> int:
    """Run a command that does this work, by the command line; return its exit code."""
    command = agent_command("cellagent work", OfflineCommand)(work)
    monkeypatch.setattr(sys, "argv", ["cellagent", "work", *options])
    return run_command_line(LazyGroup(table={"work": command}))


def raising(error: BaseException) -> Work:
    def work(_session: Session) -> NoReturn:
        raise error

    return work


FAILURES: list[tuple[BaseException, int, str, str, str]] = [
    (AgentError("no", hint="do `x`"), 1, "failed", "no", "do `x`"),
    (RefusedByRule("no"), 4, "refused", "no", ""),
    (UsageError("no", hint="`--json`"), 2, "usage", "no", "`cellagent work --json`"),
    (LinkLost("gone", hint="plug it in"), 3, "link-lost", "gone", "plug it in"),
    (LinkLost("gone"), 3, "link-lost", "gone", usual_hint(LinkLost("gone"))),
    (PortBusy("busy", hint="wait"), 3, "port-busy", "busy", "wait"),
    (PermissionError(errno.EACCES, "Permission denied", "/etc/shadow"), 1, "file",
     "/etc/shadow: Permission denied",
     "`ls -ld /etc/shadow` shows whose it is and what this user may do there"),
    (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"), 1, "file",
     "No usable temporary directory found in ['/tmp']",
     "`df -h` shows which disk is full; TMPDIR names another folder"),
    (FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), 1, "file",  # of os.getcwd
     "the folder that this was started in is gone",
     "`cd \"$PWD\"` enters one of its name, `cd ~` another"),
    (click.Abort(), 130, "interrupted", "not done: the answer was not yes", ""),
]  # fmt: skip


@pytest.mark.parametrize(("error", "code", "kind", "says", "hint"), FAILURES)
def test_a_failure_is_told_once_to_a_person_or_to_a_program(
    error: BaseException,
    code: int,
    kind: str,
    says: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ended(monkeypatch, raising(error)) == code
    told = capsys.readouterr()
    assert told.err == f"cellagent: {says}\n" + (f"  try: {hint}\n" if hint else "")
    assert told.out == ""
    assert ended(monkeypatch, raising(error), "--json") == code
    told = capsys.readouterr()
    failure = {"exit": code, "kind": kind, "message": says, "try": hint}
    assert (json.loads(told.out), told.err) == ({"error": failure}, "")


def test_ctrl_c_is_told_also_where_a_question_was_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = click.Abort()
    asked.__cause__ = KeyboardInterrupt()
    for stop in (asked, KeyboardInterrupt()):
        assert ended(monkeypatch, raising(stop)) == 130
        assert capsys.readouterr().err.lstrip() == "cellagent: stopped by Ctrl-C\n"


def test_what_was_begun_is_gone_on_with_after_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(session: Session) -> NoReturn:
        session.goes_on = "`--profile lab` goes on"
        raise KeyboardInterrupt

    assert ended(monkeypatch, work) == 130
    told = "cellagent: stopped by Ctrl-C\n  try: `cellagent work --profile lab` goes on\n"
    assert capsys.readouterr().err.lstrip() == told


def test_a_defect_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    for defect in (ValueError("x"), OSError("no number, no name"), OSError(errno.EBADF, "bad")):
        with pytest.raises(type(defect)):
            ended(monkeypatch, raising(defect))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SystemExit(3), 3),
        (SystemExit("told by click"), 1),
        (BrokenPipeError(errno.EPIPE, "gone"), 0),
    ],
)
def test_an_end_without_a_word_keeps_its_code(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    written_to = sys.stdout.fileno()  # of pytest's own, by its version, the file that it reads
    kept = os.dup(written_to)
    try:
        assert ended(monkeypatch, raising(error)) == code
    finally:
        os.dup2(kept, written_to)
        os.close(kept)
    assert capfd.readouterr().err == ""


def test_a_coroutine_is_run_to_its_end_for_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(_session: Session) -> int | None:
        return codes.pop()

    codes: list[int | None] = [None, 0, 4]
    assert [ended(monkeypatch, work) for _ in range(3)] == [4, 0, 0]


def test_an_object_goes_to_programs_and_lines_to_people(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(session: Session) -> None:
        emit_or_say(session, {"é": 1.5}, "one", "two")

    assert ended(monkeypatch, work) == 0
    assert capsys.readouterr().out == "one\ntwo\n"
    assert ended(monkeypatch, work, "--json") == 0
    assert capsys.readouterr().out == '{"é": 1.5}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        json_line({"number": float("nan")})


def test_progress_that_nobody_can_read_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    discarded: list[object] = []
    monkeypatch.setattr("agent.cli.framework.command.discard_output", discarded.append)
    monkeypatch.setattr(sys, "stderr", gone := Gone())
    note("half done")
    assert discarded == [gone]
