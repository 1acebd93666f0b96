"""A line that a pattern matches holds one of the texts that are looked for first."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from at.causes.literals import literals_of
from at.causes.table import Words, load


@pytest.mark.parametrize(
    ("pattern", "sets"),
    [
        ("Ready", [{"ready"}]),
        (r"\+CPIN: ?(?:READY|SIM)", [{"+cpin:"}, {"ready", "sim"}]),
        ("(?:ab|cde)+f?", [{"ab", "cde"}]),
        ("(?:abc)?[xyz]*", []),
        ("abc|.*", []),
        ("ab.cde|fg", [{"cde", "fg"}]),
        ("(?<!not )fail(?! again)", [{"fail"}]),
        ("^(?=.*(?:lost|no))(?=.*server).", [{"server"}, {"lost", "no"}]),
        ("a{0,3}bcd?", [{"bc"}]),
    ],
)
def test_a_pattern_needs_a_text_of_each_set(pattern: str, sets: list[set[str]]) -> None:
    assert literals_of(pattern) == sets


@given(data=st.data())
@settings(max_examples=300)
def test_whatever_a_pattern_of_the_table_matches_is_searched(data: st.DataObject) -> None:
    one = data.draw(st.sampled_from([*load().words]))
    pattern = re.compile(one.pattern, re.ASCII)
    line = data.draw(st.from_regex(pattern).filter(pattern.search))
    assert _fits(one, line)


def test_every_pattern_of_the_table_is_one() -> None:
    for one in load().words:
        one.search("")


def _fits(one: Words, line: str) -> bool:
    return one in [*load().words.of(line)]
