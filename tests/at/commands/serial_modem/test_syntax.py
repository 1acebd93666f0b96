"""Test forms of the Serial Modem: read whole, with and without the command."""

from __future__ import annotations

import pytest

from at.decode import Decoder
from at.protocol.errors import ParseError
from tests.support.modem.answers import value_of
from tests.support.modem.typed_answers import ANSWERS

FORMS = {text: lines[0] for text, lines in ANSWERS.items() if text[:4] == "AT#X" and "=?" in text}


@pytest.mark.parametrize("text", FORMS)
def test_a_test_form_is_an_answer_with_or_without_its_command(text):
    line = FORMS[text]
    for command in (text, None):
        decoder = Decoder(command)
        found = [*decoder.feed(f"\r\n{line}\r\n\r\nOK\r\n".encode()), *decoder.finish()]
        if command is None and ":" not in line:
            continue  # a name alone is nobody's, unless it was asked for
        (answer,) = found
        assert (answer["type"], answer["lines"], answer["error"]) == ("answer", [line], None)
        assert answer["value"] == {"syntax": line.partition(": ")[2]}


def test_a_build_that_logs_no_hex_lists_two_modes():
    assert value_of("AT#XLOG=?", "#XLOG: (0,1)") == {"syntax": "(0,1)"}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("AT#XLOG=?", "#XLOG: (0,1,2,3)"),
        ("AT#XNRFCLOUDFOTA=?", "#XNRFCLOUDFOTA: (0,1,2,4,6)[,<project_key>"),
        ("AT#XNRFCLOUDOBSAUTO=?", "#XNRFCLOUDOBSAUTO: (0,1),(60-86400)"),
        ("AT#XNRFPROV=?", "#XNRFPROV: 0"),
        ("AT#XNRFPROV=?", "#XNRFPRO"),
    ],
)
def test_other_parameters_are_refused(command, line):
    with pytest.raises(ParseError):
        value_of(command, line)
