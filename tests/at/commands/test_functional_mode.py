"""Functional mode and error format."""

from __future__ import annotations

import pytest

from tests.support.modem.answers import assert_fields, value_of


@pytest.mark.parametrize(
    ("command", "lines", "part"),
    [
        ("AT+CMEE?", ["+CMEE: 1"], {"n": 1}),
        ("AT+CFUN?", ["+CFUN: 4,0"], {"fun": 4, "rst": 0}),
        ("AT+CFUN=?", ["+CFUN: (0,1,4,44)"], {"funs": [0, 1, 4, 44]}),
    ],
)
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)
