"""What is no log of a modem is refused by its name, with a way out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from at.protocol.errors import TranscriptError
from at.transcripts.logs.reader import read_log
from at.transcripts.logs.shapes import FOREIGN

OTHERS = (
    (
        "Particle Device OS",
        "0000004532 [comm.protocol] INFO: Secure connection\n0000004583 [system] INFO: Up\n",
    ),
    ("Mbed OS", "[DBG ][main]: starting\n[INFO][main]: connected\n"),
    ("Arduino", "10:22:33.123 -> Starting...\n10:22:33.456 -> Temperature: 23.1\n"),
    ("Arduino", "Initializing modem...\n[13290] ### TinyGSM Version: 0.10.9\n"),
    ("Arduino", "ets Jun  8 2016 00:22:57\r\n\r\nrst:0x1 (POWERON_RESET),boot:0x13\r\n"),
    ("ESP-IDF", "I (29) boot: ESP-IDF v4.4 2nd stage bootloader\nI (58) boot: chip revision: 3\n"),
    ("Zephyr shell", "uart:~$ kernel version\nZephyr version 3.5.0\nuart:~$ \n"),
    ("Zephyr shell", "Initializing modemlib...\nInitialized modemlib\nmosh:~$\n"),
    ("Zephyr shell", "[00:00:00.250,000] <inf> app: up\nuart:~$ help\nPlease press Tab\n"),
    ("a table without a heading", "10:00:01.0,TX,AT+CGMR\n10:00:02.0,RX,OK\n"),
    ("a table without a heading", "| AT+CGMR | OK |\n"),
    ("a dump in hex", "41 54 2B 43 46 55 4E 3F 0D 0A\n0D 0A 4F 4B 0D 0A\n"),
    ("a dump in hex", "00000000: 4154 2b43 4655 4e3f 0d0a  AT+CFUN?..\n"),
    ("a dump in hex", "0000000 5441 432b 5546 3f4e 0a0d\n000000a\n"),
    ("JSON", '{"a": 1}\n'),
    ("JSON", '{"level":"info","state":"up","n":1}\n'),
    ("HTML or XML", "<!doctype html>\n<html>\n"),
    ("binary data", "\x7fELF\x01\x02\x03" + "".join(map(chr, range(128)))),
)


@pytest.mark.parametrize(("name", "log"), OTHERS)
def test_what_is_no_log_of_a_modem_is_refused_by_its_name(name: str, log: str) -> None:
    with pytest.raises(TranscriptError, match=f"looks like {name}") as refused:
        read_log(log.encode())
    assert "put TX: before what was sent" in refused.value.hint


@pytest.mark.parametrize(
    ("printed", "reads"),
    [("MC:gPIBMTE4aQ==:", "capture chunks LOG"), ("#CD:BEGIN#", "capture coredump LOG")],
)
def test_what_a_console_holds_is_refused_with_the_command_that_reads_it(
    printed: str, reads: str
) -> None:
    log = f"uart:~$ export\nuart:~$ {printed}\nuart:~$ kernel version\nuart:~$ \n"
    with pytest.raises(TranscriptError, match="looks like Zephyr shell") as refused:
        read_log(log.encode())
    assert f"`cellagent {reads}" in refused.value.hint


@pytest.mark.parametrize("other", ["Initializing...", "Starting kit at 64 MHz", '{\n"cfg": {}\n}'])
def test_a_kits_own_log_is_read_whatever_else_it_prints(other: str) -> None:
    logged = "[00:00:00.250,000] <err> os: ***** MPU FAULT *****\n" * 4
    lines = [line.text for line in read_log(f"{other}\n{logged}".encode()).lines]
    assert lines == [*other.split("\n"), *logged.splitlines()]


@pytest.mark.parametrize(
    "log",
    [
        "I: Starting bootloader\nI: Jumping to the first image slot\n",
        "*** Booting nRF Connect SDK v2.9.0 ***\nInitializing modem library\nNormal mode set.\n",
    ],
)
def test_a_kits_start_is_none_of_an_arduino(log: str) -> None:
    with pytest.raises(TranscriptError, match="no AT command, no answer"):
        read_log(log.encode())


def test_each_kind_that_is_refused_has_an_example() -> None:
    unused = [kind.name for kind in FOREIGN if not any(map(kind.name.startswith, dict(OTHERS)))]
    assert unused == []


@pytest.mark.parametrize("log", [b"", b"\n\n", b"Hello\nworld\n", b"TX: hello\nRX: world\n"])
def test_what_names_nothing_is_refused_with_the_shapes_that_are_read(log: bytes) -> None:
    with pytest.raises(TranscriptError, match="no line that was sent or received"):
        read_log(log)


def test_a_command_in_a_form_that_is_not_known_is_refused_by_its_line() -> None:
    with pytest.raises(TranscriptError, match="line 2 holds an AT command, but in no form"):
        read_log(b"It began so:\n[COM3 OUT] AT+CFUN?\n[COM3 IN] OK\n")


def test_a_log_of_a_kit_that_prints_the_sentences_of_its_receiver_is_not_refused() -> None:
    log = b"[00:02:00.000,000] <inf> gnss: Tracking: 0\n$GPGGA,,,,,,0,,99.99,,,,,,*48\n"
    assert [line.text for line in read_log(log).lines][1] == "$GPGGA,,,,,,0,,99.99,,,,,,*48"


@pytest.mark.parametrize(
    "leads",
    [
        ("kit-1  | ", "kit-10 | "),
        ("[pod/kit-1/at] ", "[pod/kit-10/at] "),
        ("COM1: ", "COM10: "),
        ("kit1: ", "kit10: "),
        ("app    | ", "app-2  | "),  # Docker Compose's
        ("app-2  | ", "app    | "),
    ],
)
def test_the_sessions_of_several_kits_are_not_mixed(leads: tuple[str, str], tmp_path: Path) -> None:
    one, other = (
        "".join(f"{lead}{line}\n" for line in ("> AT+CFUN?", f"< +CFUN: {n}", "< OK"))
        for n, lead in enumerate(leads)
    )
    with pytest.raises(TranscriptError, match=r"several kits: \S+, \S+$") as refused:
        read_log((one + other).encode())
    (tmp_path / "LOG").write_text(one + other)
    command = str(refused.value.hint).split("`")[1]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "ONE").read_text() == one
    console = f"{leads[1]}[00:00:01.000,000] <inf> app: sent AT+CFUN?\n"
    assert read_log((one + console).encode()).lines[0].text == "AT+CFUN?"
