"""Generated keys and attestation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from at.commands.catalog import command_of
from at.protocol.errors import ParseError
from at.tokens.key_formats import key_id
from tests.support.modem.answers import value_of
from tests.support.modem.signed_tokens import OTHER, attest, keygen, public


@pytest.mark.parametrize(("command", "lines"), [("AT%KEYGEN=1,2,0", ['%KEYGEN: "!!.!!"'])])
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


def test_the_typed_commands_give_decoded_tokens():
    good = keygen(public(OTHER))
    answer = command_of("AT%KEYGEN=17,2,0").parse([f'%KEYGEN: "{good}"'])
    assert answer.key_id == key_id(OTHER.public_key())
    token = command_of("AT%ATTESTTOKEN").parse([f'%ATTESTTOKEN: "{attest()}"'])
    assert token.modem_uuid == "10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert replace(token, reason="x") != token
