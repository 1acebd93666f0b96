"""`cellagent modem term`, as a person or a pipe uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.command_line import objects


def test_the_terminal_takes_a_pipe_and_tells_notices_apart() -> None:
    run = cellagent(
        "modem", "term", "--json", "--port", "virtual:", stdin="AT+CEREG=5\nAT+CFUN=1\nAT+CFUN?\n"
    )
    answers = [found for found in objects(run) if found["type"] == "answer"]
    assert [answer["final"] for answer in answers] == ["OK", "OK", "OK"]
    assert run.returncode == 0


def test_answers_and_notices_are_in_a_pipe_while_it_waits_for_more_to_be_typed() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "agent", "modem", "term", "--port", "virtual:"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as term:
        assert term.stdin is not None
        assert term.stdout is not None
        term.stdin.write("AT+CEREG=5\nAT+CFUN=4\n")
        term.stdin.flush()
        came = sorted(term.stdout.readline() for _ in range(3))
        assert came == ["<< +CEREG: 0\n", "OK\n", "OK\n"]


def test_a_line_without_an_end_is_refused_and_one_at_the_end_of_a_file_is_taken() -> None:
    run = cellagent("modem", "term", "--port", "virtual:", stdin="\0" * 1_000_000)
    assert (run.returncode, run.stdout) == (2, "")
    assert "a line of the input is longer than 65,536 bytes" in run.stderr
    assert "Traceback" not in run.stderr
    run = cellagent("modem", "term", "--port", "virtual:", stdin="AT+CFUN?\nAT+CGMI")
    assert run.stdout.splitlines()[-2:] == ["Nordic Semiconductor ASA", "OK"]
    assert run.returncode == 0


def test_an_error_of_a_modem_that_gives_texts_is_shown_with_its_text(tmp_path: Path) -> None:
    error = "+CME ERROR: operation not allowed"
    transcript = f"# device: test\n# origin: by hand\n> AT+CFUN=77\n< {error}\n"
    (tmp_path / "session").write_text(transcript)
    run = cellagent(
        "modem", "term", "--port", "replay:session", stdin="AT+CFUN=77\n", folder=tmp_path
    )
    assert run.stdout.splitlines() == [error]
