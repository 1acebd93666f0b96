"""What a kit's own log dumps in hex of its port is read as a session, by the firmware's side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.transcripts.importer import import_log
from at.transcripts.logs.hex_dumps import without_dumps
from at.transcripts.logs.lines import Side
from at.transcripts.logs.reader import read_log

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


OF_SOCAT_X = b"""> 2026/11/02 12:05:00.250000  length=10 from=0 to=9
 41 54 2b 43 45 52 45 47 3f 0d
< 2026/11/02 12:05:00.500000  length=9 from=0 to=8
 2b 43 45 52 45 47 3a 20 35
< 2026/11/02 12:05:00.750000  length=16 from=9 to=24
 2c 33 2c 2c 2c 2c 30 2c 31 35 0d 0a 4f 4b 0d 0a
"""
OF_SOCAT_X_AND_V = b"""> 2026/11/02 12:05:00.250000  length=10 from=0 to=9
 41 54 2b 43 45 52 45 47 3f 0d                    AT+CEREG?.
--
< 2026/11/02 12:05:00.500000  length=25 from=0 to=24
 2b 43 45 52 45 47 3a 20 35 2c 33 2c 2c 2c 2c 30  +CEREG: 5,3,,,,0
 2c 31 35 0d 0a                                   ,15..
 4f 4b 0d 0a                                      OK..
--
"""
OF_PYSERIAL_S_SPY = b"""000000.000 DTR  inactive
000000.250 TX   0000  41 54 2B 43 45 52 45 47  3F 0D                    AT+CEREG?.
000000.500 RX   0000  2B                                                +
000000.500 RX   0000  43 45 52 45 47 3A 20 35  2C 33 2C 2C 2C 2C 30 2C  CEREG: 5,3,,,,0,
000000.500 RX   0010  31 35 0D 0A                                       15..
000000.500 RX   0000  4F 4B 0D 0A                                       OK..
"""

OF_A_LOGGER = b"""10:00:00.250  TX 41 54 2B 43 45 52 45 47 3F 0D
10:00:00.500  RX 2B 43 45 52 45 47 3A 20 35
10:00:00.500  RX 2C 33 2C 2C 2C 2C 30 2C 31 35 0D 0A 4F 4B 0D 0A
"""
IN_BRACKETS = b"""10:00:00.250 [TX] - 41 54 2b 43 45 52 45 47 3f 0d
10:00:00.500 [RX] - 2b 43 45 52 45 47 3a 20 35 2c 33 2c 2c 2c 2c 30 2c 31 35 0d 0a 4f 4b 0d 0a
"""


OF_GNOKII = """Message sent: 0x00 / 0x000a
41 54 2b 43 45 52 45 47 3f 0d                   | AT+CEREG?
Message received: 0x00 / 0x001d
0d 0a 2b 43 45 52 45 47 3a 20 35 2c 33 2c 2c 2c |   +CEREG: 5,3,,,
2c 30 2c 31 35 0d 0a 0d 0a 4f 4b 0d 0a          | ,0,15    OK
"""
OF_GAMMU = """SENDING frame type 0x00/length 0x0A/10
41A|54T|2B+|43C|45E|52R|45E|47G|3F?|0D            AT+CEREG?.
RECEIVED frame type 0x00/length 0x1D/29
0D |0A |2B+|43C|45E|52R|45E|47G|3A:|20 |355|2C,|333|2C,|2C,|2C, ..+CEREG: 5,3,,,
2C,|300|2C,|311|355|0D |0A |0D |0A |4FO|4BK|0D |0A ,0,15....OK..
"""
OF_GAMMU_SMSD = "".join(
    f"Mon 2026/02/02 13:53:43 gammu-smsd[2205]: gammu: {line}\n" for line in OF_GAMMU.splitlines()
).replace("frame type", "frametype")
OF_THE_NRF5_SDK = """<info> app_uart: Tx:
<info> app_uart:  41 54 2B 43 45 52 45 47|AT+CEREG
<info> app_uart:  3F 0D                  |?.
<info> app_uart: Rx:
<info> app_uart:  0D 0A 2B 43 45 52 45 47|..+CEREG
<info> app_uart:  3A 20 35 2C 33 2C 2C 2C|: 5,3,,,
<info> app_uart:  2C 30 2C 31 35 0D 0A 4F|,0,15..O
<info> app_uart:  4B 0D 0A               |K..
"""
OF_A_MONITOR_OF_PORTS = """[06/05/2024 10:00:00] Written data (COM3)
    41 54 2b 43 45 52 45 47 3f 0d                     AT+CEREG?.
[06/05/2024 10:00:00] Read data (COM3)
    0d 0a 2b 43 45 52 45 47 3a 20 35 2c 33 2c 2c 2c   ..+CEREG: 5,3,,,
    2c 30 2c 31 35 0d 0a 0d 0a 4f 4b 0d 0a            ,0,15....OK..
"""


@pytest.mark.parametrize(
    "log", [OF_GNOKII, OF_GAMMU, OF_GAMMU_SMSD, OF_THE_NRF5_SDK, OF_A_MONITOR_OF_PORTS]
)
def test_a_dump_of_the_host_is_read_by_the_direction_of_the_line_above_it(log: str) -> None:
    lines = read_log(f"log: started\n{log}".encode()).lines
    assert [(line.side, line.text) for line in lines if line.side is not Side.LOG] == [
        (SENT, "AT+CEREG?"),
        (RECEIVED, "+CEREG: 5,3,,,,0,15"),
        (RECEIVED, "OK"),
    ]


@pytest.mark.parametrize(
    "log", [OF_SOCAT_X, OF_SOCAT_X_AND_V, OF_PYSERIAL_S_SPY, OF_A_LOGGER, IN_BRACKETS]
)
def test_a_dump_of_the_host_is_read_by_the_direction_of_its_row(log: bytes) -> None:
    lines = [line for line in read_log(log).lines if line.side is not Side.LOG]
    assert [(line.side, line.text, line.at_s and line.at_s % 1) for line in lines] == [
        (SENT, "AT+CEREG?", 0.25),
        (RECEIVED, "+CEREG: 5,3,,,,0,15", 0.5),
        (RECEIVED, "OK", 0.5),
    ]
