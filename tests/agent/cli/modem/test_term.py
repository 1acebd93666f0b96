"""`cellagent modem term`, as a person or a pipe uses it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.command_line import objects
from tests.support.commands.typist import Typist, at_a_shell
from tests.support.modem.pty_far_end import PtyFarEnd


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


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_the_word_that_ends_a_shell_ends_it(word: str) -> None:
    run = cellagent("modem", "term", "--port", "virtual:", stdin=f"AT+CGMI\n{word}\nAT+CGMM\n")
    assert run.stdout.splitlines() == ["Nordic Semiconductor ASA", "OK"]
    assert run.returncode == 0


def test_an_error_is_explained_by_commands_that_can_be_typed_here() -> None:
    typed = "AT+CMEE=1\nAT%CMNG=3,1,0\nAT+CFUN=4\nAT%CMNG=2,1,0\nAT+FOO\n"
    run = cellagent("modem", "term", "--port", "virtual:", stdin=typed)
    said = run.stderr.splitlines()[1:]
    assert said[:4] == [
        "  not allowed in active state",
        "  try: `AT+CFUN=4`, then try again",
        "  not found",
        "  try: nothing is there by that tag and type: `AT%CMNG=1` lists what is",
    ]
    assert len(said) == 5
    assert said[4].startswith("  try: a bare ERROR tells no more")


SHELL = """set -m
"$0" -m agent modem term --port "$1"
stty -a
echo is back
stty sane
fg
stty -a
echo has ended
"""


@contextmanager
def in_a_shell(port: str = "virtual:") -> Iterator[Typist]:
    """Give somebody at the terminal of a shell that began the command."""
    with at_a_shell(SHELL, port) as typist:
        typist.reads(b"Ctrl-D ends.")
        typist.until_off(termios.ICANON)
        yield typist


def test_a_line_comes_again_with_up_and_is_edited() -> None:
    with in_a_shell() as typist:
        typist.types(b"AT+CGMI\n")
        typist.reads(b"Nordic Semiconductor ASA\r\nOK")
        typist.until_off(termios.ICANON)
        typist.types(b"\x1b[A\x7fM\x1b[H\x1b[C\x1b[3~T\n")  # Up; its end, then its second letter
        typist.reads(b"nRF9161-LACA\r\nOK")
        typist.until_off(termios.ICANON)
        typist.types(b"\x04")
        typist.reads(b"is back")


def test_a_text_in_quotes_that_goes_on_is_told() -> None:
    with in_a_shell() as typist:
        typist.types(b'AT+COPS=1,2,"24201\n')
        typist.reads(b'the text in quotes goes on in the next line; a " ends it')
        typist.until_off(termios.ICANON)
        typist.types(b"\x04")
        typist.reads(b"is back\r\n")


async def test_a_notice_and_the_end_leave_the_line_whole_that_is_being_typed() -> None:
    with PtyFarEnd() as kit:
        loop = asyncio.get_running_loop()

        def person() -> None:
            with in_a_shell(kit.path) as typist:
                typist.types(b"AT+CGM")
                typist.reads(b"AT+CGM")
                loop.call_soon_threadsafe(partial(kit.say, b"+CEREG: 2\r\n"))
                typist.reads(b"\r<< +CEREG: 2\r\nAT+CGM")
                loop.call_soon_threadsafe(kit.unplug)
                typist.reads(b"AT+CGM\r\ncellagent: ")
                typist.reads(b"has ended")

        await asyncio.to_thread(person)


def test_ctrl_z_and_ctrl_c_give_the_terminal_back_and_fg_goes_on_with_the_line() -> None:
    with in_a_shell() as typist:
        typist.types(b"AT+CGMX")
        typist.reads(b"AT+CGMX")
        typist.types(b"\x1a")
        typist.reads(b"is back")
        typist.until_off(termios.ICANON)
        typist.types(b"\x7fI\n")
        typist.reads(b"Nordic Semiconductor ASA\r\nOK")
        typist.until_off(termios.ICANON)
        typist.types(b"AT+HALF")
        typist.reads(b"AT+HALF")
        typist.types(b"\x03")
        typist.reads(b"has ended")
    stopped, _, ended = typist.screen.partition(b"is back")
    assert b" icanon " in stopped
    assert b" icanon " in ended
