"""`cellagent modem decode`, as a person or a program calls it."""

from __future__ import annotations

import json
import subprocess
import sys


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
