"""Text from outside gives a terminal no orders, whichever way a command writes it."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli.framework import safe_text
from agent.cli.framework.safe_text import AS_IN_JSON, drawing, drawn, guard_output, printable
from tests.support.commands.command_line import ROOT
from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.on_a_terminal import on_a_terminal
from tests.support.modem.hostile_modem import hostile_modem

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs a PTY: run it on Linux or macOS")
HOSTILE = "a\x1b[35mb\x9b2Jc\u202ed\u2066e\u2028f\x7fg\u200bh\U000e0041i\ud800j\x07k\rl\x85m"
OURS = re.compile(rb"\r\n|\x1b\[[0-9;?]*[A-Za-z]|\r")  # line ends, our own colours and cursor


def is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def unsafe_in(written: bytes) -> list[str]:
    """Return what a terminal was told that it should not be; it must be UTF-8."""
    text = OURS.sub(b"", written).decode("utf-8")
    return [character for character in text if is_unsafe(character) and character not in "\n\t"]


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_every_control_and_format_character_is_escaped_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A test before may have guarded a stream that cannot show what our bars hold.
    monkeypatch.setattr(safe_text, "_plain", {})
    every = [chr(number) for number in range(sys.maxunicode + 1)]
    changed = {each for each in every if printable(each) != each}
    # What this Python's Unicode does not know yet is no reason to let it through.
    unsafe = {each for each in every if is_unsafe(each)} - {"\n", "\t"}
    assert unsafe <= changed
    assert all(unicodedata.category(each) == "Cn" for each in changed - unsafe)
    assert {each for each in every if drawn(each) != each} == changed - {"\x08", "\r", "\x1b"}


@given(text=st.text(st.characters()), number=st.integers())
def test_json_on_a_terminal_is_safe_and_the_same_json(text: str, number: int) -> None:
    value = {"line": text, text: number}
    written = io.BytesIO()
    stream = _Terminal(written, encoding="utf-8", errors=AS_IN_JSON, write_through=True)
    guarded = safe_text._GuardedStream(stream, safe_text._UNSAFE_BUT_LINE_ENDS)
    guarded.write(json.dumps(value, ensure_ascii=False) + "\n")
    assert not unsafe_in(written.getvalue())
    assert json.loads(written.getvalue()) == value


@given(st.text(st.characters()))
def test_json_elsewhere_is_unchanged_but_for_what_has_no_bytes(text: str) -> None:
    line = json.dumps(text, ensure_ascii=False)
    assert json.loads(line.encode("utf-8", AS_IN_JSON)) == text
    assert json.loads(line.encode("ascii", AS_IN_JSON)) == text
    if not any(unicodedata.category(each) == "Cs" for each in text):
        assert line.encode("utf-8", AS_IN_JSON) == line.encode()


def test_a_guarded_stream_draws_only_what_is_told_to_be_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = io.BytesIO()
    stream = _Terminal(terminal, encoding="utf-8", newline="", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    guard_output()
    with sys.stderr as closed_by_the_caller:
        assert closed_by_the_caller.write("x") == 1
    assert sys.stdout.write("\x1b[2J\x9b\r\n") == 7
    sys.stdout.writelines(["\r", "end\n"])
    assert terminal.getvalue() == b"\\u001b[2J\\u009b\r\n\\u000dend\n"
    drawing(sys.stdout).write("\x1b[2J\x9b\r")
    assert terminal.getvalue().endswith(b"\x1b[2J\\u009b\r")
    assert (sys.stdout.isatty(), sys.stdout.encoding) == (True, "utf-8")


EVERY_WAY = """
import logging, sys
import click
from agent.cli.framework.command import AgentCommand, emit, note, run_command_line, say
from agent.cli.framework.logs import log_of_the_agent, log_to_stderr
from agent.cli.framework.safe_text import drawing, guard_output
from agent.cli.framework.terminal import TableWriter, overwrite_line
from agent.cli.console.window import ConsoleWindow
from agent.cli.provision.run_progress import BenchView
from agent.console.log_line import LogLine
from agent.errors import AgentError
from agent.provisioning.boards.board import BoardLocation
from agent.provisioning.running.bench import Bench
from agent.provisioning.running.outcome import Outcome
from agent.provisioning.running.scans import Scan
from agent.provisioning.running.tray import Tray

text = %a

@click.command(cls=AgentCommand)
def every(session):
    sys.stdout.write(text + "\\n")
    print(text)
    emit({text: text})
    say(text)
    note(text)
    table = TableWriter("a", text)
    table.add(text, 1)
    table.flush()
    overwrite_line(text, end="\\n")
    log_to_stderr(2)
    logging.getLogger("x").warning("%%s", text)
    log_of_the_agent(2)
    logging.getLogger("x").warning("%%s", text)
    window = ConsoleWindow(session.json, None, "")
    window.show(LogLine(text, "error", line=text))
    window.note(text)
    window.show_answer([text])
    window.close()
    place = BoardLocation(text, text, text, text)
    end = Outcome(location=place, outcome="failed", step="key", exit=1, reason=text, hint=text)
    bench = Bench(Tray())
    bench.look({text: (place, None)})
    bench.begin(place)
    with BenchView(session, bench.tray, quiet=True) as view:
        view.end(end, bench.end(end))
        view.scan(Scan(text, False, text, text))
        say(text)
    view.summary()
    click.echo(text)
    raise AgentError(text, hint=text)

guard_output()
code = run_command_line(every)
raise RuntimeError(text)
"""


@POSIX
@pytest.mark.parametrize("arguments", [(), ("--json",), ("--" + "\u202e\x9b",)])
def test_no_way_to_write_tells_a_terminal_what_is_not_ours(arguments: tuple[str, ...]) -> None:
    code, written = on_a_terminal("-c", EVERY_WAY % HOSTILE, *arguments)
    assert (code, b"RuntimeError" in written) == (1, True), written  # a defect's traceback, too
    assert not unsafe_in(written)
    assert b"\x1b[35m" not in written, "a colour that is not ours"
    assert b"2Jc" in written or arguments


def test_every_module_writes_through_the_guard() -> None:
    """`drawing` alone passes it, and the console's thread, which guards what it writes itself."""
    around = []
    for path in [*ROOT.glob("agent/cli/**/*.py"), *ROOT.glob("at/**/*.py")]:
        text = path.read_text()
        # To parse and to print what has none of these words takes most of the time.
        written = re.search(r"print|Console|Live|tty|buffer|__std|os\.write|get_console", text)
        for node in ast.walk(ast.parse(text)) if written else ():
            words = ast.unparse(node) if isinstance(node, ast.Call | ast.Attribute) else ""
            bad = re.fullmatch(
                r"print\(.*|Console\((?!file=drawing\().*|Live\((?!console=).*|open\('/dev/tty'.*"
                r"|sys\.std(out|err)\.buffer|sys\.__std(out|err)__|os\.write\([12],.*|get_console\(.*",
                words,
                re.DOTALL,
            )
            in_virtual_kit = path.is_relative_to(ROOT / "at" / "virtual")  # a class of its own
            if bad and not in_virtual_kit:
                around.append(f"{path.relative_to(ROOT)}: {words[:80]}")
    assert around == []


CAPTURE = f'AT+X\r\n+X: "{HOSTILE}"\r\nOK\r\n'.encode("utf-8", "surrogatepass")


@POSIX
def test_a_command_shows_a_hostile_capture_and_hostile_arguments_safely(tmp_path: Path) -> None:
    code, written = on_a_terminal("-m", "agent", "modem", "decode", stdin=CAPTURE)
    assert (code, unsafe_in(written)) == (0, [])
    assert [json.loads(line)["type"] for line in written.splitlines()]
    for words in (["modem", "at", "AT"], ["modem", "at", "AT", "--json"], ["ports", "--json"]):
        port = f"replay:{tmp_path}/\x9b\u202e\udcff"
        code, written = on_a_terminal("-m", "agent", *words, "--port", port)
        assert unsafe_in(written) == []


@POSIX
@pytest.mark.parametrize("extra", [(), ("--json",), ("-vv",)], ids=["people", "json", "log"])
@pytest.mark.parametrize(
    "words",
    [
        ("modem", "at", "AT+X", "AT+CGMM"),
        ("modem", "check"),
        ("modem", "signal", "--count", "1"),
        ("modem", "jwt"),
        ("modem", "term"),
        ("console", "--seconds", "1", "--send", "x"),
        ("scan", "cells"),
        ("locate",),
        ("ports",),
        ("provision", "run", "--registration", "none", "--no-proof", "--quiet"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_lets_a_hostile_modem_speak_to_the_terminal(
    words: tuple[str, ...], extra: tuple[str, ...], closed_service: None
) -> None:
    spoken = HOSTILE.replace("\r", "").encode("utf-8", "surrogatepass")
    with hostile_modem(spoken + b"\xff\xfe") as port:
        code, written = on_a_terminal(
            "-m", "agent", *words, "--port", port, *extra, stdin=b"AT+X\r\n"
        )
    assert (unsafe_in(written), b"\x1b[35m" in written) == ([], False)
    assert (b"Traceback" in written, code in {0, 1}) == (False, True), written


def test_a_lone_surrogate_in_an_argument_ends_no_command_with_a_traceback() -> None:
    done = cellagent("modem", "at", "--json", "--port", "no\udcffwhere", "AT")
    assert (done.returncode, json.loads(done.stdout)["error"]["exit"]) == (3, 3)
    assert "no\udcffwhere" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        ("ascii", "21 deg C ###....+-|#"),
        ("latin-1", "21 °C ###·...+-|#"),
        ("utf-8", "21 °C ███·…┤─│▗"),
    ],
)
def test_what_a_person_reads_has_plain_words_where_the_encoding_lacks_ours(
    encoding: str, says: str
) -> None:
    script = (
        "from agent.cli.framework.command import emit, say\n"
        "from agent.cli.framework.safe_text import guard_output\n"
        "from agent.cli.framework.terminal import bar\n"
        "guard_output()\n"
        "say(f'21 °C {bar(3, 0, 4, 4)}…┤─│▗')\n"
        "emit('21 °C …')\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environment, check=True, cwd=ROOT
    )
    said, value = done.stdout.decode(encoding).splitlines()
    assert said == says
    assert json.loads(value) == "21 °C …"  # a program is told what it is
