"""The tolerant reader of parameters."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import ParseError
from at.protocol.values import Fields, Value, bare_line, split

ABSENT = Value()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (), id="blank is no parameter"),
        pytest.param("  ", (), id="blanks are no parameter"),
        pytest.param("1", (Value("1"),), id="one"),
        pytest.param("1,", (Value("1"), ABSENT), id="a trailing comma is one more, empty"),
        pytest.param(",1", (ABSENT, Value("1")), id="a leading comma"),
        pytest.param('1,,,"x"', (Value("1"), ABSENT, ABSENT, Value("x", True)), id="empty places"),
        pytest.param('""', (Value("", True),), id="an empty text is not absent"),
        pytest.param(' 1 , "a,(b" ,2', (Value("1"), Value("a,(b", True), Value("2")), id="quotes"),
        pytest.param('"a\r\nOK\r\nb"', (Value("a\r\nOK\r\nb", True),), id="line ends in quotes"),
        pytest.param("()", (Value(items=()),), id="an empty list"),
        pytest.param(
            '(0-3),("a",(1,2))',
            (
                Value(items=(Value("0-3"),)),
                Value(items=(Value("a", True), Value(items=(Value("1"), Value("2"))))),
            ),
            id="lists in lists",
        ),
    ],
)
def test_parameters_are_split_as_modems_write_them(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize(
    "text", ['"a', '"a"b', 'a"b', "(1", "1)", "((1)", '"011B0780\u201d,"26295",7', "(" * 2000]
)
def test_broken_quotes_and_lists_are_refused(text):
    with pytest.raises(ParseError):
        split(text)


@given(st.text(" \t\n,1a-.", min_size=1).filter(lambda text: text.strip(" \t")))
def test_bare_parameters_are_read_alike_alone_and_beside_a_text(text):
    assert split(f'{text},"x"') == (*split(text), Value("x", quoted=True))


@given(st.text(max_size=60))
def test_any_text_is_split_or_refused(text):
    with contextlib.suppress(ParseError):
        split(text)


@given(st.integers(-(2**64), 2**64))
def test_integers_of_64_bits_come_back(number):
    assert Fields(split(str(number))).integer("n") == number


@pytest.mark.parametrize("text", ['"1"', "1.5", "0x1", "x", "\u0661", "(1)", "1 2", "--1"])
def test_what_is_no_integer_is_refused(text):
    with pytest.raises(ParseError):
        Fields(split(text)).optional_integer("n")


def test_the_end_allows_empty_parameters_only():
    Fields(split(",,")).end()
    with pytest.raises(ParseError, match="one too many"):
        Fields(split("1")).end()
    fields = Fields(split("1"))
    for _ in range(3):
        fields.next_value()
    fields.end()  # behind the end nothing is left


def test_a_list_of_ranges_becomes_numbers():
    assert Fields(split("(0-3,5,,7)")).integers("list", 0, 7) == (0, 1, 2, 3, 5, 7)
    for bad in ("(3-1)", "(a)", "1", '("1")', "(0-8)", "(8)"):
        with pytest.raises(ParseError):
            Fields(split(bad)).integers("list", 0, 7)


def test_a_bare_answer_is_never_a_line_of_another_name():
    assert bare_line(["mfw_nrf9160_1.3.7"], "+CGMR") == "mfw_nrf9160_1.3.7"
    assert bare_line(['+CGMR: "x"'], "+CGMR") == "x"
    for lines in (["+CSCON: 1"], [], ["a", "b"], ['"a']):
        with pytest.raises(ParseError):
            bare_line(lines, "+CGMR")
