"""Rules for what varies: they are read, written, and match what they stand for."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.check_digit import luhn_digit
from at.protocol.errors import TranscriptError
from at.transcripts.rules import Rule, Varying, read_rules, write_rules
from at.transcripts.sent_match import SentMatch
from at.transcripts.steps import Direction, TranscriptStep

IMEIS = st.text(string.digits, min_size=14, max_size=14).map(lambda d: (d + luhn_digit(d)).encode())
EXAMPLES = {
    Rule.ANY: st.binary(max_size=8).filter(lambda data: not set(data) & set(b"\r\n")),
    Rule.INT: st.integers(-(10**9), 10**9).map(lambda number: str(number).encode()),
    Rule.HEX: st.text(string.hexdigits, min_size=1, max_size=8).map(str.encode),
    Rule.IMEI: IMEIS,
}
LITERALS = st.one_of(
    st.binary(max_size=12), st.sampled_from([b"{int}", b"{", b"}", b"\\{any:x}", b"{redacted:key}"])
)


@st.composite
def ruled(draw: st.DrawFn) -> tuple[bytes, tuple[Varying, ...]]:
    data, varying = draw(LITERALS), []
    for rule in draw(st.lists(st.sampled_from(Rule), max_size=3)):
        given_one = draw(st.booleans())
        example = draw(EXAMPLES[rule]) if given_one else rule.example
        varying.append(Varying(len(data), len(data) + len(example), rule, given_one))
        data += example + draw(LITERALS)
    return data, tuple(varying)


@given(step=ruled())
def test_what_is_written_is_read_back(step: tuple[bytes, tuple[Varying, ...]]) -> None:
    text = write_rules(*step)
    assert read_rules(text) == step
    assert text.isascii()
    assert text.isprintable()
    assert text == text.rstrip()


@given(text=st.text(max_size=80))
def test_no_text_upsets_the_reader(text: str) -> None:
    wrong = ""
    data, varying = b"", ()
    try:
        data, varying = read_rules(text)
    except (ValueError, TranscriptError) as error:
        wrong = str(error)
    assert wrong.isascii()
    assert wrong.isprintable()
    assert all(one.rule.holds(data[one.begin : one.end]) for one in varying)


PARTS = st.one_of(
    st.sampled_from(["{int}", "{hex}", "{any}"]), st.text("A1-+=,0f", min_size=1, max_size=3)
)
SENT = st.text("A1-+=,0f9\n\"'", max_size=14)
AS_REGEX = {"{int}": "-?[0-9]+", "{hex}": "[0-9A-Fa-f]+", "{any}": "[^\r\n]*"}


@given(parts=st.lists(PARTS, max_size=5), data=st.data())
def test_a_command_matches_as_its_pattern_does(parts: list[str], data: st.DataObject) -> None:
    """Another reader of the rules: the regular expression that a person would write."""
    text = "".join(parts)
    step = TranscriptStep(Direction.SENT, *_step(text))
    filled = "".join(data.draw(st.one_of(SENT, _of(part))) for part in parts)
    sent = data.draw(st.sampled_from([filled, filled[:-1], filled + "1"])).replace('"', "")
    match = SentMatch(step, b"\r")
    whole = all(match.take(byte) for byte in sent.encode() + b"\r") and match.whole
    regex = "".join(AS_REGEX.get(part, re.escape(part)) for part in parts)
    assert whole == (re.fullmatch(regex, sent) is not None)


def _step(text: str) -> tuple[bytes, None, int, tuple[Varying, ...]]:
    data, varying = read_rules(text)
    return data + b"\r", None, 0, varying


def _of(part: str) -> st.SearchStrategy[str]:
    if part not in AS_REGEX:
        return st.just(part)
    return EXAMPLES[Rule[part[1:-1].upper()]].map(lambda data: data.decode("ascii", "ignore"))


@pytest.mark.parametrize(
    ("text", "fits", "differs"),
    [
        ("AT+CMEE={int}", ["AT+CMEE=0", "AT+CMEE=-17"], ["AT+CMEE=", "AT+CMEE=1a", "AT+CMEE=--1"]),
        ('AT%X=1,"{any}01"', ['AT%X=1,"20801"', 'AT%X=1,"01"'], ['AT%X=1,"2080"', 'AT%X=1,"01']),
        ("AT#X={imei}01", ["AT#X=35265610036787201"], ["AT#X=35265610036787301", "AT#X=352656"]),
        ('AT%CMNG=0,7,0,"{any}"', ['AT%CMNG=0,7,0,"-----\r\nMII\r\n"'], ['AT%CMNG=0,7,1,""']),
        ("AT{any}", ["AT", "AT+CFUN=1"], ["AT\nA"]),
        ("AT+X={hex},{int}", ["AT+X=fF09,3"], ["AT+X=,3", "AT+X=g,3"]),
        ('AT+CPIN="{redacted:pin}",{int}', ['AT+CPIN="12,34",5'], ['AT+CPIN="12"', "AT+CPIN=1,5"]),
        ("AT+X=\\{int}", ["AT+X={int}"], ["AT+X=1"]),
    ],
)
def test_rules_stand_for_what_varies(text: str, fits: list[str], differs: list[str]) -> None:
    for line, expected in [*((line, True) for line in fits), *((line, False) for line in differs)]:
        match = SentMatch(TranscriptStep(Direction.SENT, *_step(text)), b"\r")
        whole = all(match.take(byte) for byte in line.encode() + b"\r") and match.whole
        assert whole is expected, line


def test_what_was_sent_so_far_shows_what_is_no_secret() -> None:
    match = SentMatch(
        TranscriptStep(Direction.SENT, *_step('AT+X={int},"{redacted:key}",1')), b"\r"
    )
    assert all(map(match.take, b'AT+X=17,"abc",'))
    assert not match.take(ord("2"))
    assert match.begun == b'AT+X=17,"{redacted:key}",'
    assert bytes(match.sent) == b'AT+X=17,"abc",'
