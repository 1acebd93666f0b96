"""`cellagent modem jwt`, as a person or a program calls it."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tests.support.commands.command_line import completed as cellagent


@pytest.mark.contract("C4", "D10.3")
def test_a_token_is_shown_decoded_and_said_only_when_asked():
    arguments = ("modem", "jwt", "--port", "virtual:", "--exp", "0", "--sub", "dev", "--json")
    done = cellagent(*arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["claims"]["sub"] == "dev"
    assert "token" not in found
    assert json.loads(cellagent(*arguments, "--show-token").stdout)["token"].count(".") == 2


def test_a_modem_without_time_makes_no_token_that_expires(tmp_path: Path):
    done = cellagent("modem", "jwt", "--port", f"virtual:{tmp_path / 'kit.json'}", "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert error["kind"] == "no-modem-time"
    assert error["try"]


def test_a_modem_whose_clock_was_never_set_makes_no_token_that_expires(tmp_path: Path):
    done = cellagent("modem", "jwt", "--port", recorded(tmp_path, "00/01/01,00:00:05+00"))
    assert done.returncode == 1
    assert "does not know the time" in done.stderr


def test_a_token_that_had_expired_when_it_was_made_is_shown_and_fails(tmp_path: Path):
    done = cellagent("modem", "jwt", "--port", recorded(tmp_path, "20/09/13,12:26:40+00"))
    assert done.returncode == 5
    assert "2020-09-13 12:36:40 UTC" in done.stdout
    assert "had expired" in done.stderr
    assert "compare AT+CCLK? with" in done.stderr


def test_a_token_that_begins_in_the_future_is_shown_and_fails(tmp_path: Path):
    begins = 2840140800
    done = cellagent("modem", "jwt", "--port", recorded(tmp_path, "60/01/01,00:00:00+00", begins))
    assert done.returncode == 5
    assert "2060-01-01 00:10:00 UTC" in done.stdout
    assert "the token begins" in done.stderr
    assert "compare AT+CCLK? with" in done.stderr


def recorded(folder: Path, clock: str, begins: int = 1600000000) -> str:
    """Return the port of a kit with this clock, whose token begins then, in Unix seconds."""
    texts = {"alg": "ES256"}, {"iat": begins, "exp": begins + 600}
    parts = [*(json.dumps(text).encode() for text in texts), bytes(64)]
    token = ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    exchanges = (
        ("AT+CGMR", "mfw_nrf9160_1.3.5"),
        ("AT+CCLK?", f'+CCLK: "{clock}"'),
        ('AT%JWT=0,600,"",""', f'%JWT: "{token}"'),
    )
    session = folder / "kit.transcript"
    lines = [f"> {command}\n< {answer}\n< OK\n" for command, answer in exchanges]
    session.write_text("# transcript: 1\n" + "".join(lines))
    return f"replay:{session}"


def test_a_subject_that_would_break_out_is_refused_before_a_port_is_opened():
    done = cellagent("modem", "jwt", "--port", "/dev/no-such-port", "--sub", 'a"b')
    assert done.returncode == 2


@pytest.mark.contract("D1.3")
def test_a_modem_that_refuses_to_tell_its_firmware_makes_no_token(tmp_path: Path):
    recorded = tmp_path / "silent.transcript"
    recorded.write_text("# transcript: 1\n> AT+CGMM\n< nRF9160-SICA\n< OK\n")
    done = cellagent("modem", "jwt", "--port", f"replay:{recorded}", "--json")
    assert done.returncode == 4
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert "cannot be told from its answer to AT+CGMR" in error["message"]
