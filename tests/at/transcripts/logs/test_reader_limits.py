"""Logs of any bytes and any length: nothing is lost where they are cut, each part is read once."""

from __future__ import annotations

import io
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.transcripts.logs.lines import Side
from at.transcripts.logs.reader import read_lines, read_log

ANSWER = '\r\n+CEREG: 3,"0901","0002F302",9,0,15\r\n\r\n352656100367872\r\n\r\nOK\r\n'


@given(cuts=st.sets(st.integers(1, len(ANSWER) - 1)))
def test_what_a_port_gave_in_parts_is_read_whole(cuts: set[int]) -> None:
    parts = [ANSWER[begin:end] for begin, end in pairwise([0, *sorted(cuts), len(ANSWER)])]
    log = "TX b'AT+CG'\nTX b'SN\\r'\n" + "".join(f"RX {part.encode()!r}\n" for part in parts)
    lines = read_log(log.encode()).lines
    assert [line.text for line in lines] == ["AT+CGSN", *filter(None, ANSWER.split("\r\n"))]


@given(log=st.binary(max_size=400))
def test_no_bytes_upset_the_reader(log: bytes) -> None:
    try:
        read = read_log(log)
    except TranscriptError:
        return
    assert all(line.text and isinstance(line.side, Side) for line in read.lines)


def test_a_literal_with_a_byte_that_python_does_not_read_costs_its_line_alone() -> None:
    log = b"TX 'AT+CGMR'\nRX '\x80mfw_nrf9160_1.3.5'\nRX 'OK'\n"
    sides = [line.side for line in read_log(log).lines]
    assert sides == [Side.SENT, Side.LOG, Side.RECEIVED]


def test_a_long_log_is_read_as_it_comes_and_not_kept() -> None:
    data = b"[00:00:01.000,000] <inf> app: beat\n" * 60_000 + b"+CEREG: 3\n"
    file = io.BytesIO(data)
    lines = read_lines(io.BufferedReader(file))
    assert next(lines).number == 1
    assert file.tell() < len(data) / 2
    *_, last = lines
    assert (last.text, last.number) == ("+CEREG: 3", 60_001)


def test_a_line_without_an_end_comes_in_pieces() -> None:
    data = b"AT+CFUN=1 " + b"payload 12 " * 20_000
    lines = list(read_lines(io.BufferedReader(io.BytesIO(data))))
    assert len(lines) > 10
    assert max(len(line.text) for line in lines) <= 16_384


def test_each_of_many_blanks_is_looked_at_once() -> None:
    """By the square of their number these would take minutes, beyond the limit of a test."""
    text = f"AT+X{' ' * 200_000}="
    read = read_log(f"Command: AT\nResponse: OK\nCommand: {text}\nResponse: ERROR\n".encode())
    assert [line.text for line in read.lines] == ["AT", "OK", text, "ERROR"]


def test_each_of_many_joined_commands_is_looked_at_once() -> None:
    """By the square of their number these would take minutes, beyond the limit of a test."""
    text = f"AT+C{';+C' * 100_000}"
    assert [line.text for line in read_log(f"{text}\nOK\n".encode()).lines] == [text, "OK"]


def test_each_of_many_prompts_is_looked_at_once() -> None:
    """By a power of their number 40 would take years, beyond the limit of a test."""
    read = read_log(b"AT\nOK\n" + b"uart:~$ " * 40 + b"help\n")
    assert [line.text for line in read.lines][:2] == ["AT", "OK"]


def test_a_stray_quote_keeps_no_more_than_a_key_is_long() -> None:
    data = b'AT+CGMR\n+NAME: "open\n' + b"text\n" * 5_000
    lines = list(read_lines(io.BufferedReader(io.BytesIO(data))))
    assert max(line.text.count("\n") for line in lines) <= 501
