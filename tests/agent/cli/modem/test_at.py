"""`cellagent modem at`, as a person or a program calls it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.cli.modem.at import commands_in
from agent.config.write import set_value
from at.tokens.key_formats import key_pem
from tests.support.commands.command_line import completed as cellagent
from tests.support.commands.command_line import objects
from tests.support.commands.on_a_terminal import on_a_terminal
from tests.support.modem.signed_tokens import OTHER

PEM = 'AT%CMNG=0,42,0,"-----BEGIN CERTIFICATE-----\nTEST\n-----END CERTIFICATE-----"'

PSK = 'AT%CMNG=0,42,3,"c0ffee5ec2e7"'


def test_commands_are_answered_in_order_and_the_first_failure_ends_it() -> None:
    run = cellagent("modem", "at", "--port", "virtual:", "AT+CFUN?", "AT+NOSUCH", "AT+CGMR")
    assert run.stdout.splitlines()[:3] == ["+CFUN: 1", "OK", "ERROR"]
    assert run.returncode == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\x07mfw_nrf9160_1.3.5", "not understood as part of the answer"),
        ("mfw_nrf9160_1.3.5" * 4096, "a line that is too long: mfw_nrf9160_1.3.5"),
    ],
    ids=["damaged", "too long"],
)
def test_a_line_that_the_answer_lacks_is_shown_beside_it(
    tmp_path: Path, line: str, said: str
) -> None:
    recorded = tmp_path / "kit.transcript"
    recorded.write_text(f"# transcript: 1\n> AT+CGMR\n< {line}\n< OK\n")
    run = cellagent("modem", "at", "--port", f"replay:{recorded}", "AT+CGMR")
    assert (run.returncode, run.stdout) == (0, "OK\n")
    assert said in run.stderr
    assert "mfw_nrf9160_1.3.5" in run.stderr


def test_an_error_of_a_recording_says_that_it_may_lack_the_command(tmp_path: Path) -> None:
    recorded = tmp_path / "kit.transcript"
    recorded.write_text("# transcript: 1\n> AT+CGMR\n< mfw_nrf9160_1.3.5\n< OK\n")
    run = cellagent("modem", "at", "--port", f"replay:{recorded}", "AT+CFUN?")
    assert (run.returncode, run.stdout) == (1, "ERROR\n")
    assert run.stderr.endswith(
        f"or the recording lacks it: `grep '> ' {recorded}` shows what it has\n"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("AT+CCLK=26/11/22,12:00:00+00", "'AT+CCLK=\"26/11/22,12:00:00+00\"'"),
        ("AT+CGDCONT=0,IP,iot.example", '\'AT+CGDCONT=0,"IP","iot.example"\''),
        ("AT+CPWD=SC,1234,9876", ""),  # what is a secret is not said again
        ("AT+CFUN=9", ""),
        ("AT+FOO=?", ""),
    ],
)
def test_a_text_whose_quotes_the_shell_took_is_shown_with_them(typed: str, meant: str) -> None:
    run = cellagent("modem", "at", "--port", "virtual:", typed)
    assert run.returncode == 1
    assert ("which the shell takes" in run.stderr) is bool(meant)
    assert f"`cellagent modem at {meant} --port virtual:`" in run.stderr or not meant
    assert (
        "which the shell takes"
        not in cellagent(*("modem", "at", "--port", "virtual:", "-"), stdin=f"{typed}\n").stderr
    )


def test_nothing_is_sent_where_a_later_command_is_none() -> None:
    run = cellagent("modem", "at", "--port", "virtual:", "AT+CFUN=0", "AT", "+CEREG?")
    assert (run.returncode, run.stdout) == (2, "")
    assert "does not begin with AT" in run.stderr


def test_the_number_of_an_error_is_told_in_words_before_what_to_try() -> None:
    run = cellagent("modem", "at", "--port", "virtual:", "AT+CMEE=1", "AT%CMNG=3,1,0")
    assert run.stdout.splitlines()[-1] == "+CME ERROR: 518"
    assert run.stderr.splitlines() == [
        "  not allowed in active state",
        "  try: `cellagent modem off --flight --port virtual:`, then try again",
    ]


def test_json_answers_carry_the_value_and_what_went_wrong() -> None:
    run = cellagent("modem", "at", "--json", "--port", "virtual:", "AT+CFUN?", "AT+NOSUCH")
    answer, refused = objects(run)
    assert answer["value"] == {"fun": 1, "rst": None}
    assert (answer["final"], answer["lines"], answer["error"]) == ("OK", ["+CFUN: 1"], None)
    assert refused["final"] == "ERROR"
    assert refused["error"]


@pytest.mark.parametrize(
    "line",
    [
        'AT%CMNG=0,1,2,"key"',
        'at%cmng = 0,1,2,"key"',
        "AT %CMNG=0,1,3,key",
        'AT%CMNG=0,1,4,"key-identity"',
        'AT+CMEE=1;%CMNG=0,1,2,"key"',
        'AT%XSUDO=4,"sign";%CMNG=0,1,2,"key"',
        'AT%KEYINJECT="cose"',
    ],
)
def test_a_credential_in_the_arguments_is_refused_with_the_way_to_do_it(line: str) -> None:
    run = cellagent("modem", "at", "--port", "virtual:", line)
    assert run.returncode == 2
    assert "modem at -" in run.stderr
    assert "key" not in run.stdout


def test_a_credential_from_standard_input_is_written_and_not_shown(tmp_path: Path) -> None:
    lines = f"# a comment\n\n{PSK}\nAT%CMNG=1,42\n"
    port = f"virtual:{tmp_path / 'kit.json'}"
    run = cellagent("modem", "at", "--json", "--port", port, "-", stdin=lines)
    written, listed = objects(run)
    assert run.returncode == 0
    assert written["command"] == 'AT%CMNG=0,42,3,"{redacted:key}"'
    assert "5ec2e7" not in run.stdout
    assert len(listed["lines"]) == 1  # type: ignore[arg-type]


async def test_lines_are_joined_while_a_quote_is_open() -> None:
    assert await commands_of(f"AT\n{PEM}\r\n\nAT+CGMR") == ["AT", PEM, "AT+CGMR"]
    assert await commands_of('AT+X="open') == ['AT+X="open']


async def commands_of(text: str) -> list[str]:
    async def lines() -> AsyncIterator[bytes]:
        for line in text.encode().splitlines(keepends=True):
            yield line

    return [command async for command in commands_in(lines())]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_a_command_to_be_typed(number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "agent", "modem", "at", "--port", "virtual:", "AT", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "OK\n"
        waiting.send_signal(number)
        assert waiting.wait(20) == 128 + number


def test_a_line_that_breaks_out_is_refused_before_it_is_sent() -> None:
    run = cellagent("modem", "at", "--json", "--port", "virtual:", 'AT%JWT=0,1,"a')
    (failure,) = objects(run)
    assert failure["error"]["exit"] == 2  # type: ignore[index]


def test_a_device_that_is_no_serial_port_is_told_as_one_with_the_way_to_the_ports() -> None:
    done = cellagent("modem", "at", "AT", "--port", "/dev/null")
    assert done.returncode == 3
    assert done.stderr == (
        "cellagent: /dev/null is no serial port\n  try: `cellagent ports` lists them\n"
    )


def test_a_recording_without_the_answer_is_made_anew_not_checked(tmp_path: Path) -> None:
    recording = tmp_path / "kit.transcript"
    recording.write_text("# origin: written by hand\n> AT+CESQ\n")
    done = cellagent("modem", "at", "AT+CESQ", "--timeout", "0.01", "--port", f"replay:{recording}")
    assert "no answer to +CESQ" in done.stderr
    assert "try: the recording has no answer to it: `cellagent modem record --up" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is POSIX's")
def test_no_line_of_a_modem_is_broken_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    said = '+COPS: (2,"A Network of Tests","Tests","00101",7)'
    recording = tmp_path / "kit.transcript"
    recording.write_text(f"# origin: written by hand\n> AT+COPS=?\n< {said}\n< OK\n")
    asked = ("modem", "at", "AT+COPS=?", "--port", f"replay:{recording}")
    code, written = on_a_terminal("-m", "agent", *asked)
    assert (code, written.decode().splitlines()) == (0, [said, "OK"])


def test_a_port_that_is_not_there_is_exit_3() -> None:
    run = cellagent("modem", "at", "--json", "--port", "/dev/pts/ttyNOWHERE", "AT")
    (failure,) = objects(run)
    assert failure["error"]["exit"] == 3  # type: ignore[index]
    assert run.returncode == 3


@pytest.fixture
def identity_key(tmp_path: Path) -> Path:
    """Return the file with the public key of the kit of `kit.json`."""
    served = ("modem", "virtual", "--tcp", "127.0.0.1:0", "--state", str(tmp_path / "kit.json"))
    file = tmp_path / "identity.pem"
    done = cellagent(*served, "--identity-key", str(file), "--", sys.executable, "-c", "")
    assert done.returncode == 0, done.stderr
    return file


def test_what_the_modem_signed_is_checked_with_the_keys_of_the_profile(
    identity_key: Path, tmp_path: Path
) -> None:
    call = ("modem", "at", "--port", f"virtual:{tmp_path / 'kit.json'}")
    unknown = cellagent(*call, "AT%ATTESTTOKEN")
    assert (unknown.returncode, unknown.stderr.count("not checked")) == (0, 1)
    set_value("provisioning.attestation_keys", str(identity_key), profile="custom")
    right = cellagent(*call, "AT%ATTESTTOKEN", "AT%KEYGEN=7,2,0", "AT+CFUN?")
    assert (right.returncode, right.stderr) == (0, "signature: verified\n" * 2)
    identity_key.write_text(key_pem(OTHER.public_key()))
    wrong = cellagent(*call, "AT%ATTESTTOKEN", "AT+CFUN?")
    assert (wrong.returncode, "AT%ATTESTTOKEN is wrong" in wrong.stderr) == (4, True)
    assert "+CFUN" not in wrong.stdout
    answer, failure = objects(cellagent(*call, "--json", "AT%ATTESTTOKEN"))
    assert answer["value"]["verified"] is False  # type: ignore[index]
    assert failure["error"]["exit"] == 4  # type: ignore[index]


@pytest.mark.parametrize("way", ["--json", "-vv"])
@pytest.mark.parametrize(
    "line",
    [
        "AT+CPIN=c0ffee5ec2e7",
        'AT+CPIN"c0ffee5ec2e7',
        'at +cpwd = "SC" , "c0ffee5ec2e7" , "c0ffee5ec2e7"',
        'AT+CFUN=7;+CGAUTH=0,1,"user","c0ffee5ec2e7"',
    ],
)
def test_no_answer_error_or_log_shows_the_secret_of_a_command(line: str, way: str) -> None:
    run = cellagent("modem", "at", way, "--port", "virtual:", line)
    assert run.returncode != 0
    assert "5ec2e7" not in run.stdout + run.stderr
    if way == "--json":
        shown = objects(run)[0]
        assert shown.get("command") is None or "{redacted:" in str(shown["command"])
