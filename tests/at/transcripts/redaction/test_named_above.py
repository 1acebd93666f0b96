"""What stands below the line that names it as secret."""

from __future__ import annotations

import pytest

from at.transcripts.redaction.redactor import Redactor

ROW = "c0 ff ee 5e c2 e7 c0 ff  ee 5e c2 e7 c0 ff ee 5e |...^.... .^.....^"
KEY = "wP/uXsLnwP/uXsLnwP/uXsLnwP/uXsLn"
STAMP = "[00:00:10.000,000] <dbg> "


def cleaned(*lines: str) -> list[str]:
    redactor = Redactor()
    return [redactor.clean_answer(f"{line}\r\n".encode()).decode().rstrip() for line in lines]


@pytest.mark.parametrize(
    "title",
    [
        f"{STAMP}app: psk",
        f"{STAMP}app: Loading the PSK",
        f"{STAMP}app: Key:",
        f"{STAMP}app: Key value in NVS:",
        f"{STAMP}app: private key (32 bytes)",
        f"{STAMP}app: device_key = ",
        "dumping 'premaster secret' (48 bytes)",
    ],
)
@pytest.mark.parametrize(
    ("lead", "last"),
    [
        ("", "01 02 |.. "),
        ("00000000: ", "00000010: 01 02 |.."),
        (f"{STAMP}app: ", "0304"),
        ("mbedtls: ssl_tls.c:1: 0000:  ", "OK"),
        ("I (123) app: 0x3ffb0000   ", "OK"),
        ("Jan  1 12:00:00 gw app[12]: ", "OK"),
    ],
)
def test_a_dump_of_a_key_below_its_title_is_hidden(title: str, lead: str, last: str) -> None:
    shown = cleaned(title, lead + ROW, lead + ROW.split("|", maxsplit=1)[0], last, "01 02 03 04")
    assert shown[0] == title.rstrip()
    assert [line.removeprefix(lead).strip() for line in shown[1:3]] == ["{redacted:key}"] * 2
    assert "01 02 |" not in shown[3]


@pytest.mark.parametrize(
    "title",
    [
        f"{STAMP}app: public key:",
        f"{STAMP}app: pubkey",
        f"{STAMP}app: hash",
        f"{STAMP}app: monkey business",
    ],
)
def test_a_dump_of_what_is_no_secret_stays(title: str) -> None:
    assert cleaned(title, ROW)[1] == ROW


def test_a_row_of_one_byte_is_hidden_where_it_stands_and_not_in_the_time_before_it() -> None:
    assert cleaned(f"{STAMP}app: psk", f"{STAMP}app: 10")[1] == f"{STAMP}app: {{redacted:key}}"


def test_what_follows_a_title_and_is_no_dump_stays() -> None:
    digest = f"{STAMP}mcuboot: image 0 has hash: {'c0ffee5e' * 8}"
    assert cleaned(f"{STAMP}app: no key", digest)[1] == digest
    lines = [f"{STAMP}app: no key", f"{STAMP}app: up", ROW, f"{STAMP}app: no key", "OK", ROW]
    assert cleaned(*lines) == lines
    assert cleaned("AT", f"{STAMP}app: key", "+CEREG: 1") == ["AT", f"{STAMP}app: key", "+CEREG: 1"]


@pytest.mark.parametrize("kind", ["PSK", "PSK_ID", "PK", "PRE_SHARED_KEY", "PRIV_KEY"])
def test_a_credential_that_a_shell_prints_is_hidden(kind: str) -> None:
    log = f"{STAMP}app: tick"
    lines = [f"uart:~$ cred get 42 {kind} DEFAULT bin", KEY, log, "wP/uXg==", "uart:~$ at AT", KEY]
    hidden = ["{redacted:key}"]
    assert cleaned(*lines) == [lines[0], *hidden, log, *hidden, "uart:~$ at AT", KEY]


def test_a_credential_that_a_shell_is_given_line_by_line_is_hidden() -> None:
    redactor = Redactor()
    redactor.clean_command(b"cred buf load\r")
    said = b"Input credential, finish with CTRL+C.\r\n"
    assert redactor.clean_answer(said) == said
    assert redactor.clean_command(f"{KEY}\r".encode()) == b"{redacted:key}\r"
    assert redactor.clean_answer(f"{KEY}\r\n".encode()) == b"{redacted:key}\r\n"
    assert redactor.clean_command(b"AT+CFUN?\r") == b"AT+CFUN?\r"
    assert redactor.clean_answer(f"{KEY}\r\n".encode()) == f"{KEY}\r\n".encode()


def test_a_certificate_of_others_that_a_shell_prints_stays() -> None:
    assert cleaned("uart:~$ cred get 42 CA DEFAULT string", KEY)[1] == KEY


@pytest.mark.parametrize("asked", ["settings read hex golioth/psk", "lwm2m read 0/0/5 -x"])
def test_a_secret_that_a_shell_dumps_in_several_rows_is_hidden(asked: str) -> None:
    rows = [f"00000000: {ROW}", f"00000010: {ROW}", "00000020: 01 02 |..|"]
    assert not any(
        "c0 ff" in line or "01 02" in line for line in cleaned(f"uart:~$ {asked}", *rows)
    )
    assert cleaned(f"uart:~$ {asked}", *rows, "+CFUN: 1")[-1] == "+CFUN: 1"
