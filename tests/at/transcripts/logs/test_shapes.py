"""The same session in every shape that people paste, whole and with a damaged byte."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from at.protocol.errors import TranscriptError
from at.transcripts.logs.lines import Side
from at.transcripts.logs.reader import read_lines, read_log
from at.transcripts.logs.shapes import SHAPES
from tests.support.modem.session_shapes import BYTES, RECEIVED, SENT, SESSION, log_of


@pytest.mark.parametrize(
    "line",
    ["Connected", "port is: 8883", "connected to /topic", "hangup is: 1", "flowcontrol: none"],
)
def test_what_the_kit_printed_is_no_word_of_a_terminal(line: str) -> None:
    assert line in [each.text for each in read_log(f"AT\nOK\n{line}\n".encode()).lines]


@pytest.mark.parametrize("name", BYTES)
def test_the_same_session_comes_out_of_every_shape(name: str) -> None:
    lines = read_log(BYTES[name]).lines
    assert tuple((line.side, line.text) for line in lines) == SESSION
    one_by_one = read_lines(io.BufferedReader(io.BytesIO(BYTES[name])))
    assert tuple((line.side, line.text) for line in one_by_one) == SESSION


def test_a_command_that_timed_out_was_not_sent_once_more() -> None:
    log = b"DEBUG:a.b:Sending command: AT\nWARNING:a.b:Command timed out: AT (0.3 s)\n"
    assert [(line.side, line.text) for line in read_log(log).lines] == [
        (Side.SENT, "AT"),
        (Side.LOG, "Command timed out: AT (0.3 s)"),
    ]


def test_a_response_of_esp_modem_goes_on_below_its_first_line() -> None:
    log = (
        b"I (1) main: up\nD (2) command_lib: generic_command command AT+CMEE=1\r\n\n"
        b"D (3) command_lib: Response: \r\nOK\r\n\nI (4) main: on\n"
    )
    lines = [(line.side, line.text) for line in read_log(log).lines]
    assert lines[1:3] == [(SENT, "AT+CMEE=1"), (RECEIVED, "OK")]
    assert {side for side, _ in (lines[0], *lines[3:])} == {Side.LOG}


def test_every_row_of_the_table_is_needed() -> None:
    unused = {shape.name for shape in SHAPES} - {read_log(log).shape for log in BYTES.values()}
    assert unused <= {"-> / <-", "< / >"}
    assert read_log(log_of("-> {}", "<- {}").encode()).shape == "-> / <-"
    assert read_log(log_of("< {}", "> {}").encode()).shape == "< / >"


def test_half_a_character_of_utf_16_is_refused() -> None:
    with pytest.raises(TranscriptError, match="UTF-16 with half a character"):
        read_log(BYTES["UTF-16 LE"][:-1])


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return a shape's name and its log with one byte cut, flipped or doubled."""
    name = draw(st.sampled_from(sorted(BYTES)))
    log = BYTES[name]
    at = draw(st.integers(0, len(log) - 1))
    new = draw(
        st.one_of(
            st.just(b""),
            st.just(log[at : at + 1] * 2),
            st.integers(0, 255).map(lambda n: bytes([n])),
        )
    )
    return name, log[:at] + new + log[at + 1 :]


@given(damaged=mutated())
@example(damaged=("bare", BYTES["bare"].replace(b"AT+CEREG?", b'AT+CEREG"')))
def test_a_damaged_byte_costs_no_more_than_its_records(damaged: tuple[str, bytes]) -> None:
    """Every record that the byte did not touch is there, whole; or the log is refused."""
    name, log = damaged
    try:
        found = [line.text for line in read_log(log).lines]
    except TranscriptError:
        return
    whole = Counter(text for _, text in SESSION)
    lost = whole - Counter(record for text in found for record in text.split("\n"))
    assert lost.total() <= 3, (
        name,
        lost,
    )  # the line end of a transcript's piece that is lost costs three
