"""The credential store: what is listed, hashed and never sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.credentials import DeleteCredential, ListCredentials, WriteCredential, sha256_of
from at.protocol.errors import ParseError, UnsafeArgument
from tests.support.modem.answers import SHA, assert_fields, value_of


@pytest.mark.parametrize(("command", "lines", "part"), [("AT%CMNG=1", [], {"credentials": []})])
def test_an_answer_becomes_its_fields(command, lines, part):
    assert_fields(value_of(command, *lines), part)


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("AT%CMNG=1", ['%CMNG: 1,0,"00"']),
        ("AT%CMNG=1", ["%CMNG: 4294967296,0"]),
        ("AT%CMNG=1", [f'%CMNG: 1,0,"{SHA}"', "%CMNG: 1"]),
    ],
)
def test_a_malformed_answer_is_refused_whole(command, lines):
    with pytest.raises(ParseError):
        value_of(command, *lines)


def test_credential_lists_are_read_with_and_without_blanks_and_with_odd_separators():
    lines = [f'%CMNG: 16842753,0,"{SHA}"\r\x0c%CMNG: 4294967293, 10, "{SHA}"', "%CMNG: 5,2"]
    found = ListCredentials().parse(lines).credentials
    assert [(item.sec_tag, item.type) for item in found] == [
        (16842753, 0),
        (4294967293, 10),
        (5, 2),
    ]


def test_a_credential_is_hashed_as_it_is_written():
    pem = "-----BEGIN CERTIFICATE-----\nTEST\n-----END CERTIFICATE-----\n"
    for text in (pem, pem.replace("\n", "\r\n")):
        command = WriteCredential(16842753, 0, text)
        assert command.encode() == f'AT%CMNG=0,16842753,0,"{text}"'
        assert command.sha == sha256_of(text.encode()) == sha256_of(text)


def test_a_secret_shows_in_no_repr():
    assert "canary" not in repr(WriteCredential(1, 3, "canary"))


@pytest.mark.parametrize(
    "command",
    [
        DeleteCredential(2**31, 0),
        WriteCredential(2**31, 0, "x"),
        WriteCredential(1, 0, 'a"b'),
        WriteCredential(1, 0, "a\x1ab"),
    ],
)
def test_what_could_do_harm_is_not_sent(command):
    with pytest.raises(UnsafeArgument):
        command.encode()


LISTED = {
    "AT%CMNG=1": f'%CMNG: 16842753,0,"{SHA}"',
    "AT%CMNG=2,1,0": f'%CMNG: 1,0,"{SHA}","a\r\nOK\r\nb"',
}


@given(st.sampled_from(sorted(LISTED)), st.data())
def test_no_entry_that_was_cut_gives_half_a_record(command, data):
    line = LISTED[command]
    cut = line[: data.draw(st.integers(0, len(line) - 1))]
    try:
        found = value_of(command, cut)
    except ParseError:
        return
    assert all(item["sha"] in {None, SHA} for item in found["credentials"])
