"""`cellagent modem jwt`, as a person or a program calls it."""

from __future__ import annotations

import json
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
