"""Tokens of the modem."""

from __future__ import annotations

import pytest

from at.commands.jwt import NO_TIME, MakeJwt
from at.protocol.errors import NoModemTime, ParseError, UnsafeArgument
from tests.support.modem.answers import value_of
from tests.support.modem.typed_answers import ANSWERS


@pytest.mark.parametrize(("command", "lines"), [("AT%JWT=0,60", ['%JWT: "a.b"'])])
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (MakeJwt(), 'AT%JWT=0,0,"",""'),
        (MakeJwt("s", "a", 1), 'AT%JWT=0,1,"s","a"'),
        (MakeJwt(exp_delta_s=60, sec_tag=0), 'AT%JWT=0,60,"","",0,2'),
        (MakeJwt(sec_tag=7, key_type=8), 'AT%JWT=0,0,"","",7,8'),
    ],
)
def test_a_token_is_asked_for_by_life_texts_and_key(command, line):
    assert command.encode() == line


@pytest.mark.parametrize(
    "command", [MakeJwt(exp_delta_s=0), MakeJwt(sec_tag=-1), MakeJwt(sec_tag=7, key_type=1)]
)
def test_a_token_without_life_or_key_is_not_asked_for(command):
    with pytest.raises(UnsafeArgument):
        command.encode()


TOKEN = ANSWERS["AT%JWT"][0]  # it never expires


def test_a_token_that_should_expire_and_does_not_tells_of_the_clock():
    assert value_of('AT%JWT=0,0,"",""', TOKEN) == value_of("AT%JWT=0", TOKEN)
    assert value_of("AT%JWT=0,x", TOKEN) == value_of("AT%JWT=", TOKEN)
    with pytest.raises(NoModemTime, match="does not know the time") as refused:
        value_of("AT%JWT=0,60", TOKEN)
    assert refused.value.hint == NO_TIME
