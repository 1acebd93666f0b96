"""Tokens of the modem."""

from __future__ import annotations

import pytest
from answers import value_of

from at.protocol.errors import ParseError


@pytest.mark.parametrize(("command", "lines"), [("AT%JWT=0,60", ['%JWT: "a.b"'])])
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)
