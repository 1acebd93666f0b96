"""One door to the port: what passes is one command with the arguments that were meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.encoding import check_line, quoted
from at.protocol.errors import UnsafeArgument
from tests.support.modem.secret_spellings import CANARY, spelled


def commands_seen(stream: str) -> list[str]:
    """Split what was written as the modem's side does: CR ends a command outside quotes."""
    found, current, inside = [], "", False
    for char in stream:
        if char == '"':
            inside = not inside
        if char == "\r" and not inside:
            found.append(current)
            current = ""
        else:
            current += char
    assert not inside
    return found


@given(st.text())
def test_any_value_is_one_argument_of_one_command_or_is_refused(value: str) -> None:
    try:
        line = check_line(f"AT%JWT=0,60,{quoted(value)},7")
    except UnsafeArgument:
        return
    (seen,) = commands_seen(line + "\r")
    assert seen.split('"') == ["AT%JWT=0,60,", value, ",7"]


def test_what_was_typed_without_at_is_named_as_it_was_typed() -> None:
    with pytest.raises(UnsafeArgument, match=r"'\+CEREG\?' is no AT command"):
        check_line("+CEREG?")


@given(st.text(alphabet=st.sampled_from('\r\n\x00\x1a\x1b\x08\x7f\x85"ab '), min_size=1))
def test_control_characters_and_quotes_never_pass(value: str) -> None:
    if set(value) <= set("ab "):
        assert quoted(value) == f'"{value}"'
        return
    with pytest.raises(UnsafeArgument):
        quoted(value)


@pytest.mark.contract("C4")
@pytest.mark.parametrize(
    ("control", "name"),
    [("\r", "CR"), ("\n", "LF"), ("\0", "NUL"), ("\x1a", "Ctrl-Z"), ("\x1b", "Esc")],
)
def test_a_refusal_names_the_control_character(control: str, name: str) -> None:
    with pytest.raises(UnsafeArgument, match=f"holds {name}:"):
        quoted(f"a{control}b")


def test_a_pem_text_keeps_its_line_ends_only_where_its_command_permits_them() -> None:
    pem = "-----BEGIN CERTIFICATE-----\r\nTEST\n-----END CERTIFICATE-----\n"
    line = f"AT%CMNG=0,1,0,{quoted(pem, multiline=True)}"
    assert check_line(line, multiline=True) == line
    with pytest.raises(UnsafeArgument):
        check_line(line)
    with pytest.raises(UnsafeArgument):
        check_line(line + "\rAT", multiline=True)
    with pytest.raises(UnsafeArgument):
        quoted("x\x1a", multiline=True)


def test_a_refusal_names_the_command_and_not_its_secret() -> None:
    with pytest.raises(UnsafeArgument) as refused:
        check_line('AT%CMNG=0,1,3,"5ec2e7\x1a"')
    assert "%CMNG" in str(refused.value)
    assert "5ec2e7" not in str(refused.value)


def test_a_quote_that_is_never_closed_is_refused_for_the_modem_would_wait_for_its_end() -> None:
    for line in ('AT+X="a', 'AT+X="a","', 'AT+X="'):
        with pytest.raises(UnsafeArgument, match="an odd quote"):
            check_line(line)


def test_a_command_longer_than_the_modem_takes_is_refused() -> None:
    for longest in ('AT+X="' + "a" * 4088 + '"', "AT+X=" + "1" * 4090):
        assert check_line(longest) == longest
        with pytest.raises(UnsafeArgument, match="4096 bytes"):
            check_line(longest.replace("X", "XY"))
    with pytest.raises(UnsafeArgument, match="4095"):
        check_line('AT+X="' + "a" * 4095 + '"')
    with pytest.raises(UnsafeArgument, match="UTF-8"):
        check_line('AT+X="\ud800"')


def test_no_refusal_shows_the_secret_of_a_command() -> None:
    refusals: list[str] = []
    for _name, _spelling, line, _sent in spelled():
        for cut in (line, line + '"', line + "\r", line + "x" * 5000):
            try:
                check_line(cut)
            except UnsafeArgument as error:
                refusals.append(f"{error} {error.hint}")
    assert len(refusals) > 1000
    assert [text for text in refusals if CANARY in text] == []
