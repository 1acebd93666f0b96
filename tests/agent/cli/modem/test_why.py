"""`cellagent modem why`, as a person or a program calls it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from at.virtual.modem import VirtualModem
from at.virtual.options import VirtualOptions
from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.on_a_terminal import on_a_terminal
from tests.support.modem.pty_far_end import PtyFarEnd

DENIED = "AT+CFUN=1\nOK\n+CEREG: 2\n+CEREG: 3,,,,0,15\n"
_SHAPE = ["cause", "certainty", "says", "evidence", "next"]


def causes(run: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    assert run.returncode == 0, run.stderr
    (report,) = [json.loads(line) for line in run.stdout.splitlines()]
    assert list(report) == ["causes"]
    assert all(list(cause) == _SHAPE for cause in report["causes"])
    return list(report["causes"])


@pytest.mark.parametrize("as_input", [True, False])
def test_a_log_is_read_from_a_file_and_from_standard_input(tmp_path: Path, as_input: bool) -> None:
    log = tmp_path / "putty.log"
    log.write_text(DENIED)
    name = "-" if as_input else str(log)
    found = causes(cellagent("modem", "why", name, "--json", stdin=DENIED if as_input else ""))
    assert [(one["cause"], one["certainty"]) for one in found] == [("emm-15", "certain")]
    assert found[0]["evidence"] == "+CEREG: 3,,,,0,15"


def test_a_person_sees_cause_line_and_a_command_to_copy(tmp_path: Path) -> None:
    log = tmp_path / "putty.log"
    log.write_text("AT+CFUN?\n+CFUN: 4\nOK\n")
    said = cellagent("modem", "why", str(log), "--port", "/dev/ttyACM7").stdout
    assert "certain   modem-off: The modem is off: functional mode 4.\n" in said
    assert "line 2: +CFUN: 4\n" in said
    assert "try: `cellagent modem on --port /dev/ttyACM7`\n" in said
    assert all(len(line) <= 80 for line in said.splitlines() if str(log) not in line)


def test_a_cause_fits_a_narrow_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    log = tmp_path / "putty.log"
    log.write_text("AT+CPIN?\n+CME ERROR: 10\n")
    _, shown = on_a_terminal("-m", "agent", "modem", "why", str(log))
    step = (
        "          try: `cellagent modem off`, then put the SIM in,\r\n"
        "          contacts on contacts and cut corner as drawn, then\r\n"
        "          `cellagent modem on`\r\n"
    )
    assert step.encode() in shown


def test_each_command_of_a_next_step_can_be_pasted(tmp_path: Path) -> None:
    log = tmp_path / "putty.log"
    log.write_text("AT+CFUN=1\nOK\n+CEREG: 3\n")
    kit = ("--port", "/dev/tty ACM7")
    said = cellagent("modem", "why", str(log), *kit).stdout
    step = (
        "`cellagent modem at AT+CEREG=5 AT+CNEC=24 AT+CFUN=4 AT+CFUN=1 --port '/dev/tty ACM7'`,\n"
        "          then `cellagent modem why --port '/dev/tty ACM7'`\n"
    )
    assert step in said
    log.write_text("AT+CFUN?\n+CFUN: 4\nOK\n")
    (found,) = causes(cellagent("modem", "why", str(log), "--json", *kit))
    assert found["next"] == "cellagent modem on --port '/dev/tty ACM7'"


def test_no_secret_of_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "putty.log"
    log.write_text('AT+CFUN=4\nOK\nAT+CPIN="4711"\nERROR\nAT%CMNG=0,1,3,"deadbeef"\nERROR\n')
    run = cellagent("modem", "why", str(log), "--json")
    assert "4711" not in run.stdout
    assert "deadbeef" not in run.stdout


def test_a_kit_is_asked_and_left_as_it_was(tmp_path: Path) -> None:
    port = str(tmp_path / "kit")
    kit = ("modem", "virtual", "--instant", "--fault", "not-registered=3", "--pty", port)
    script = (
        "import subprocess, sys\n"
        "def say(*words):\n"
        f"    run = [sys.executable, '-m', 'agent', 'modem', *words, '--port', {port!r}]\n"
        "    print(subprocess.run(run, capture_output=True, text=True, check=True).stdout)\n"
        "say('at', 'AT+CEREG=2', 'AT+CFUN=1')\n"
        "say('why')\n"
        "say('signal')\n"
        "say('at', 'AT+CEREG?', 'AT+CMEE?')\n"
    )
    said = cellagent(*kit, "--", sys.executable, "-c", script).stdout
    assert said.count("certain   emm-15: ") == 2
    assert "+CEREG: 2,3" in said
    assert "+CMEE: 1" in said  # `modem at` shows what it raised itself


@pytest.mark.parametrize(("kit", "cause"), [("", "registered"), ("kit.json", "modem-off")])
def test_a_kit_that_is_off_is_told_to_be_switched_on(tmp_path: Path, kit: str, cause: str) -> None:
    port = f"virtual:{tmp_path / kit if kit else ''}"
    (found,) = causes(cellagent("modem", "why", "--json", "--port", port))
    assert found["cause"] == cause


HEXDUMP = (
    b"00000000  41 54 2b 43 47 53 4e 0d  33 35 32 36 35 36 31 30  |AT+CGSN.35265610|\n"
    b"00000010  39 30 30 30 30 30 31 0d  0a 4f 4b 0d 0a           |9000001..OK..|\n0000001d\n"
)
XXD = (
    b"00000000: 4154 2b43 4753 4e0d 3335 3236 3536 3130  AT+CGSN.35265610\n"
    b"00000010: 3930 3030 3030 310d 0a4f 4b0d 0a41 540d  9000001..OK..AT.\n00000020: 0a   .\n"
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02\xff", "no text"),
        (b"\x00" * 8192, "no text"),
        (HEXDUMP, "a dump in hex"),
        (XXD, "a dump in hex"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    log = tmp_path / "image.bin"
    log.write_bytes(content)
    run = cellagent("modem", "why", str(log))
    assert run.returncode == 1
    assert said in run.stderr
    assert all(len(line) <= 80 for line in run.stderr.splitlines())
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_command_that_is_stopped_half_way_puts_back_what_it_raised(number: int) -> None:
    options = VirtualOptions(faults=("denied",), instant=True)
    kit = VirtualModem(options, now=0.0, unix_time=0.0)
    run: list[asyncio.subprocess.Process] = []

    def answer(line: bytes) -> bytes:
        if line == b"AT+CEREG=5":
            run[0].send_signal(number)
        kit.receive(line + b"\r", now=1.0)
        return kit.data_to_send()

    for line in (b"AT+CEREG=1", b"AT+CMEE=0", b"AT+CFUN=1", b"AT"):
        kit.receive(line + b"\r", now=0.0)
    kit.data_to_send()
    with PtyFarEnd(answer) as kit_end:
        command = (sys.executable, "-m", "agent", "modem", "why", "--port", kit_end.path)
        run.append(await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE))
        _, said = await run[0].communicate()
    assert run[0].returncode == 128 + number
    assert b"Traceback" not in said
    assert b"AT+CEREG=5\r" in kit_end.received
    kit.receive(b"AT+CEREG?\rAT+CMEE?\r", now=2.0)
    assert kit.data_to_send().split() == [b"+CEREG:", b"1,3", b"OK", b"+CMEE:", b"0", b"OK"]


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, 130)])
def test_a_signal_ends_the_wait_for_who_writes_the_log(number: int, code: int) -> None:
    call = [sys.executable, "-m", "agent", "modem", "why", "-"]
    with subprocess.Popen(
        call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as reading:
        assert reading.stdin
        # It reads once a pipe was taken from that is given more than it holds, 64 KiB.
        reading.stdin.write(b"AT\nOK\n" * 12000)
        reading.stdin.flush()
        reading.send_signal(number)
        assert reading.wait(30) == code
