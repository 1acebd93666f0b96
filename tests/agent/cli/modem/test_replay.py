"""`modem replay` as a person and a script use it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from at.driver.modem import open_modem
from tests.support.commands.command_line import ROOT, completed

CELLAGENT = (sys.executable, "-m", "agent")
PLAYED = "# device: test\n# origin: by hand\n> AT+CGMR\n< mfw_nrf9160_1.3.7\n< OK\n"


def run(folder: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return completed("modem", *arguments, stdin=stdin, folder=folder)


@pytest.mark.parametrize(
    ("commands", "code", "says"),
    [
        (("AT+CGMR",), 0, ""),
        (("AT+CGMM",), 1, "line 3 of the transcript has `AT+CGMR"),
        ((), 1, "played.transcript: 1 step never sent"),
    ],
)
def test_a_strict_replay_says_what_does_not_fit(
    commands: tuple[str, ...], code: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "played.transcript").write_text(PLAYED)
    session = (*CELLAGENT, "modem", "at", *commands) if commands else ("true",)
    done = run(tmp_path, "replay", "played.transcript", "--tcp", "127.0.0.1:0", "--", *session)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    ready = json.loads(done.stdout.splitlines()[0])
    assert ready["ready"] is True
    assert ready["port"].startswith("tcp://127.0.0.1:")


def test_a_lenient_replay_answers_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "played.transcript").write_text(PLAYED)
    session = (*CELLAGENT, "modem", "at", "AT+CGMR", "AT+CGMR")
    done = run(
        tmp_path, "replay", "played.transcript", "--lenient", "--pty", "played", "--", *session
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("mfw_nrf9160_1.3.7") == 2


UNPLUGGED = """\
# origin: by hand
> AT+CGMR
< mfw_nrf9160_1.3.7
< OK
! closed
> AT+CGMM
< nRF9160-SICA
< OK
! closed
"""
CLIENT = """\
import os, sys
import serial
port = os.environ["CELLAGENT_PORT"].replace("tcp://", "socket://")
for command in (b"AT+CGMR", b"AT+CGMM"):
    while True:
        try:
            line = serial.serial_for_url(port, timeout=60)
            break
        except OSError:
            pass
    line.write(command + b"\\r")
    print(line.read_until(b"OK\\r\\n"))
    try:
        print("still there:", line.read(1))
    except serial.SerialException:
        print("hung up")
try:
    serial.serial_for_url(port)
except serial.SerialException:
    print("gone")
"""


@pytest.mark.parametrize("where", [("--pty", "played"), ("--tcp", "127.0.0.1:0")])
def test_a_replay_hangs_up_where_the_recorded_line_was_closed(
    where: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "unplugged.transcript").write_text(UNPLUGGED)
    client = (sys.executable, "-c", CLIENT)
    done = run(tmp_path, "replay", "unplugged.transcript", *where, "--", *client)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        r"b'mfw_nrf9160_1.3.7\r\nOK\r\n'",
        "hung up",
        r"b'nRF9160-SICA\r\nOK\r\n'",
        "hung up",
        "gone",
    ]


def test_a_lenient_replay_hangs_up_after_the_command_where_the_line_was_closed_and_comes_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "unplugged.transcript").write_text(UNPLUGGED)
    client = CLIENT.replace('(b"AT+CGMR", b"AT+CGMM")', '(b"AT+CGMM", b"AT+CGMR")')
    done = run(
        tmp_path,
        *("replay", "unplugged.transcript", "--lenient", "--pty", "played", "--"),
        *(sys.executable, "-c", client),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:5] == [
        r"b'nRF9160-SICA\r\nOK\r\n'",
        "hung up",
        r"b'mfw_nrf9160_1.3.7\r\nOK\r\n'",
        "hung up",
    ]


async def test_a_replayed_port_stays_for_what_may_be_asked_yet(tmp_path: Path) -> None:
    (tmp_path / "unplugged.transcript").write_text(UNPLUGGED)
    async with open_modem(f"replay:{tmp_path / 'unplugged.transcript'}") as modem:
        for command in ("AT+CGMM", "AT+CGMR"):
            assert (await modem.execute(command)).ok


def test_a_replay_whose_line_was_closed_for_good_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "unplugged.transcript").write_text("< Ready\n! closed\n")
    link = tmp_path / "played"
    with subprocess.Popen(
        [*CELLAGENT, "modem", "replay", "unplugged.transcript", "--pty", str(link)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    ) as served:
        assert served.stdout is not None
        served.stdout.readline()
        with link.open("rb", buffering=0) as terminal:
            # What the modem said first waits for somebody to hear it.
            assert terminal.read(7) == b"Ready\r\n"
            with contextlib.suppress(OSError):  # for who was reading when it went
                assert terminal.read(1) == b""
        assert served.wait(60) == 0
    assert not os.path.lexists(link)


def test_a_transcript_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "played.transcript").write_text("AT+CGMR\n")
    done = run(tmp_path, "replay", "played.transcript", "--pty", "played")
    assert done.returncode == 1
    assert "line 1 is no step" in done.stderr
