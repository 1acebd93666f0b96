"""`cellagent modem decode`, as a person or a program calls it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
import sys
import zipfile

import pytest

from agent.config.write import set_value
from at.tokens.key_formats import key_pem
from tests.support.modem.signed_tokens import IDENTITY, OTHER, attest


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


def test_a_captured_file_is_decoded_as_its_bytes_on_standard_input_are(tmp_path):
    capture = tmp_path / "capture.txt"
    capture.write_bytes(b"AT+CFUN?\r\n+CFUN: 1\r\nOK\r\n")
    done = cellagent("modem", "decode", str(capture))
    piped = cellagent("modem", "decode", "-", stdin=capture.read_bytes())
    assert (done.returncode, done.stdout, done.stderr) == (0, piped.stdout, b"")
    assert json.loads(done.stdout.splitlines()[-1])["value"]["fun"] == 1
    for encoding in ("utf-8-sig", "utf-16"):  # of Notepad, of PowerShell
        saved = capture.read_text().encode(encoding)
        assert cellagent("modem", "decode", stdin=saved).stdout == done.stdout


@pytest.mark.parametrize("verb", ["decode", "import", "why"])
def test_a_packed_log_is_refused_with_what_unpacks_it(verb, tmp_path):
    log = b"AT+CFUN?\r\n+CFUN: 1\r\nOK\r\n"
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as file:
        file.writestr("log.txt", log)
    packed = {
        "gunzip": gzip.compress(log),
        "xz -d": lzma.compress(log),
        "bzip2 -d": bz2.compress(log),
        "unzip": (tmp_path / "log.zip").read_bytes(),
    }
    for program, data in packed.items():
        done = cellagent("modem", verb, "-", stdin=data)
        assert (done.returncode, done.stdout) == (2, b"")
        assert f"undo that first: `{program}`".encode() in done.stderr
        (tmp_path / "a log").write_bytes(data)
        done = cellagent("modem", verb, str(tmp_path / "a log"))
        assert f"undo that first: `{program} '{tmp_path}/a log'`".encode() in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = cellagent("modem", "decode", str(tmp_path / "none.txt"))
    assert done.returncode == 2
    assert b"none.txt" in done.stderr


def test_decoding_needs_no_port_and_no_input():
    done = cellagent("modem", "decode")
    assert (done.returncode, done.stdout) == (0, b"")


def test_what_the_modem_signed_is_checked_with_the_keys_of_the_profile(tmp_path):
    capture = f'%ATTESTTOKEN: "{attest()}"\r\nOK\r\n%ATTESTTOKEN: "{attest(key=OTHER)}"\r\nOK\r\n'
    call = ("modem", "decode", "--command", "AT%ATTESTTOKEN")

    def verdicts():
        done = cellagent(*call, stdin=capture.encode())
        assert (done.returncode, done.stderr) == (0, b"")
        values = [json.loads(line)["value"] for line in done.stdout.splitlines()]
        return [(value["verified"], value["reason"].partition(",")[0]) for value in values]

    assert verdicts() == [(None, "not checked")] * 2
    keys = tmp_path / "keys.pem"
    keys.write_text(key_pem(IDENTITY.public_key()))
    set_value("provisioning.attestation_keys", str(keys), profile="custom")
    assert verdicts()[0] == (True, "")
    assert verdicts()[1][0] is False
