"""The commands `modem decode`, `modem signal` and `modem jwt`, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def cellagent(*arguments, stdin=b""):
    call = [sys.executable, "-m", "agent", *arguments]
    return subprocess.run(call, input=stdin, capture_output=True, timeout=60, check=False)


def test_captured_bytes_become_json_lines_and_malformed_ones_leave_exit_0():
    capture = b'+CSCON: 7\r\n+CEREG: 5,1,"00B7","00011B07",7\r\n\r\nOK\r\n'
    done = cellagent("modem", "decode", "--command", "AT+CEREG?", stdin=capture)
    assert (done.returncode, done.stderr) == (0, b"")
    notice, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert notice["error"]
    assert answer["value"]["stat"] == 1


def test_decoding_needs_no_port_and_no_input():
    done = cellagent("modem", "decode")
    assert (done.returncode, done.stdout) == (0, b"")


def test_the_signal_is_shown_with_bars_and_as_json():
    done = cellagent("modem", "signal", "--port", "virtual:")
    assert done.returncode == 0, done.stderr
    assert "RSRP" in done.stdout.decode()
    done = cellagent("modem", "signal", "--port", "virtual:", "--json")
    assert {"rsrp", "rsrp_dbm", "rsrq_db", "snr_db"} <= set(json.loads(done.stdout))


@pytest.mark.contract("C4", "D10.3")
def test_a_token_is_shown_decoded_and_said_only_when_asked():
    arguments = ("modem", "jwt", "--port", "virtual:", "--exp", "0", "--sub", "dev", "--json")
    done = cellagent(*arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["claims"]["sub"] == "dev"
    assert "token" not in found
    assert json.loads(cellagent(*arguments, "--show-token").stdout)["token"].count(".") == 2


def test_a_modem_without_time_makes_no_token_that_expires():
    done = cellagent("modem", "jwt", "--port", "virtual:", "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert error["kind"] == "no-modem-time"
    assert error["try"]


def test_a_subject_that_would_break_out_is_refused_before_a_port_is_opened():
    done = cellagent("modem", "jwt", "--port", "/dev/no-such-port", "--sub", 'a"b')
    assert done.returncode == 2
