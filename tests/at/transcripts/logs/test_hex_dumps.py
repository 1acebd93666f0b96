"""What a kit's own log dumps in hex of its port is read as a session, by the firmware's side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.transcripts.importer import import_log
from at.transcripts.logs.hex_dumps import without_dumps
from at.transcripts.logs.reader import Side, read_log

SENT, RECEIVED = Side.SENT, Side.RECEIVED
PEM = 'AT%CMNG=0,7,0,"-----BEGIN CERTIFICATE-----\nVEVTVA==\n-----END CERTIFICATE-----"'


def dump(label: str, data: bytes, lead: str = "") -> str:
    """Return a dump as Zephyr's log writes it: 16 bytes a row, a gap behind eight of them."""
    rows = [f"{lead}[00:00:07.250,000] <dbg> {label}"]
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        pairs = " ".join(f"{byte:02x}" for byte in row[:8])
        pairs += "  " + " ".join(f"{byte:02x}" for byte in row[8:])
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{lead}{'':36}{pairs:<49}|{shown[:8]} {shown[8:]}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("lead", ["", "00> ", "[10:00:00.000] 00> "])
@pytest.mark.parametrize(
    ("out", "back"),
    [
        ("slm_at_host: RX", "slm_at_host: TX"),
        ("sm_at_host: cmd_send: RX", "sm_uart_handler: TX"),
        ("modem_cmd_handler: modem_cmd_send_ext: SENT DATA", "modem_cmd_handler: process: RECV"),
    ],
)
def test_a_dump_is_what_was_sent_or_received(out: str, back: str, lead: str) -> None:
    log = (
        f"{lead}[00:00:00.500,000] <inf> slm: started\n"
        + dump(out, b"AT+CEREG?\r\n", lead)
        + dump(back, b"\r\n+CEREG: 5,2\r\n\r\nOK\r\n", lead)
        + dump(out, PEM.encode(), lead)
        + dump(back, b"\r\nOK\r\n", lead)
    )
    lines = [line for line in read_log(log.encode()).lines if line.side is not Side.LOG]
    assert [(line.side, line.text) for line in lines] == [
        (SENT, "AT+CEREG?"),
        (RECEIVED, "+CEREG: 5,2"),
        (RECEIVED, "OK"),
        (SENT, PEM),
        (RECEIVED, "OK"),
    ]
    assert [line.number for line in lines[:3]] == [2, 4, 4]


def test_a_dump_that_lost_the_blanks_before_its_rows_is_one() -> None:
    log = dump("sm_at_host: RX", b"AT+CEREG?\r\n") + dump("sm_at_host: TX", b"\r\n+CEREG: 5,2\r\n")
    lines = read_log("".join(f"{row.strip()}\n" for row in log.splitlines()).encode()).lines
    assert [(line.side, line.text) for line in lines] == [
        (SENT, "AT+CEREG?"),
        (RECEIVED, "+CEREG: 5,2"),
    ]


def test_a_secret_in_a_dump_is_redacted() -> None:
    log = dump("sm_at_host: RX", b'AT%CMNG=0,7,3,"c0ffee"') + dump("sm_at_host: TX", b"\r\nOK\r\n")
    steps = import_log(log.encode()).transcript.steps
    assert [step.data for step in steps] == [b'AT%CMNG=0,7,3,"{redacted:key}"\r', b"OK\r\n"]


@given(data=st.binary(min_size=1, max_size=80))
def test_every_byte_of_a_dump_comes_back(data: bytes) -> None:
    lines = list(without_dumps(enumerate(dump("port: TX", data).splitlines())))
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").strip("\r\n\0")
    head = "[00:00:07.250,000] <dbg> port: > "
    assert lines == ([(0, head + text)] if text else [])


@given(lines=st.lists(st.sampled_from(["<dbg> a: TX", "     41 54 |AT", "OK", "", "  41|A"])))
def test_what_is_no_dump_stays(lines: list[str]) -> None:
    kept = [line for _, line in without_dumps(enumerate(lines))]
    assert [line for line in kept if line == "OK"] == [line for line in lines if line == "OK"]
    assert len(kept) <= len(lines)


def test_a_dump_of_esp_modem_says_its_direction_in_each_row() -> None:
    rows = (
        ("38820", "tx", "41 54 2b 43 45 52 45 47  3f 0d", "AT+CEREG?."),
        ("39120", "rx", "0d 0a 2b 43 45 52 45 47  3a 20 30 2c 33 0d 0a 0d", "..+CEREG: 0,3..."),
        ("39120", "rx", "0a 4f 4b 0d 0a", ".OK.."),
        ("39200", "tx", "41 54 0d", "AT."),
        ("39220", "rx", "0d 0a 4f 4b 0d 0a", "..OK.."),
    )
    log = "I (312) uart: queue free spaces: 256\n" + "".join(
        f"\x1b[0;32mD ({at}) uart-{way}: 0x3f419c18   {pairs:<49} |{text}|\x1b[0m\n"
        for at, way, pairs, text in rows
    )
    lines = [line for line in read_log(log.encode()).lines if line.side is not Side.LOG]
    assert [(line.side, line.text, line.at_s) for line in lines] == [
        (SENT, "AT+CEREG?", 38.82),
        (RECEIVED, "+CEREG: 0,3", 39.12),
        (RECEIVED, "OK", 39.12),
        (SENT, "AT", 39.2),
        (RECEIVED, "OK", 39.22),
    ]
