"""A typed command: its text, and the parts of a captured one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.command import (
    Command,
    CommandText,
    Form,
    OkCommand,
    Parameters,
    at_command,
    format_parameters,
    read_command,
)
from at.protocol.encoding import check_line
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.values import Fields, split

TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"'))


@at_command("AT%EXAMPLE=")
class SetExample(OkCommand, frozen=True):
    """AT%EXAMPLE=<values>."""

    values: Parameters

    def parameters(self) -> Parameters:
        return self.values


@given(st.lists(st.none() | st.integers(-(2**40), 2**40) | TEXTS, max_size=6).map(tuple))
def test_what_is_written_is_one_line_and_reads_back(values: Parameters) -> None:
    line = check_line(SetExample(values).encode())
    parts = read_command(line)
    assert parts is not None
    assert (parts.name, parts.form) == ("%EXAMPLE", Form.SET)
    read = [value.text for value in split(parts.arguments)]
    written = [None if value is None else str(value) for value in values]
    while written and written[-1] is None:
        written.pop()
    assert read == written


@at_command("AT%EXAMPLE=")
class ReadExample(Command[int], frozen=True):
    """AT%EXAMPLE=<first>,<second>: it answers with a number."""

    first: int
    second: str | None = None

    def read(self, fields: Fields) -> int:
        return fields.integer("number") + self.first


def test_a_command_is_what_its_text_says() -> None:
    assert (SetExample.name, SetExample.form, SetExample.prefix) == ("%EXAMPLE", Form.SET, "")
    assert SetExample.timeout_s == Command.timeout_s
    assert (ReadExample.prefix, ReadExample(1)) == ("%EXAMPLE", ReadExample(1, None))
    with pytest.raises(AttributeError):
        ReadExample(1).first = 2  # type: ignore[misc]


@at_command("AT%EXAMPLE")
class RunExample(OkCommand, frozen=True):
    """AT%EXAMPLE: it has no parameters."""


def test_a_command_without_parameters_is_a_value_as_others_are() -> None:
    command = RunExample()
    assert (command.encode(), command.parameters()) == ("AT%EXAMPLE", ())
    assert (command, hash(command)) == (RunExample(), hash(RunExample()))
    assert command != SetExample(())
    assert repr(command) == "RunExample()"
    assert not hasattr(command, "__dict__")


def test_the_parameters_are_the_fields_in_their_order() -> None:
    assert ReadExample(1, "a").encode() == 'AT%EXAMPLE=1,"a"'
    assert ReadExample(1).encode() == "AT%EXAMPLE=1"


def test_an_answer_is_one_line_and_is_read_to_its_end() -> None:
    assert ReadExample(1).parse(["%EXAMPLE: 41"]) == 42
    for lines in ([], ["%EXAMPLE: 41", "%EXAMPLE: 41"], ["%EXAMPLE: 41,5"], ["%OTHER: 41"]):
        with pytest.raises(ParseError):
            ReadExample(1).parse(lines)


def test_trailing_empty_parameters_leave_no_comma() -> None:
    assert format_parameters((1, None, "a", None, None)) == '1,,"a"'
    assert format_parameters((None, None)) == ""
    with pytest.raises(UnsafeArgument):
        format_parameters(('a"b',))


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("AT+CFUN?", CommandText("+CFUN", Form.READ)),
        ("at+cfun=?", CommandText("+CFUN", Form.TEST)),
        ("AT%XMONITOR", CommandText("%XMONITOR", Form.EXECUTE)),
        ("AT%CMNG=1,17", CommandText("%CMNG", Form.SET, "1,17")),
        (" AT+X= \r\n", CommandText("+X", Form.SET)),
        ("AT", None),
        ("ATE0", None),
        ("+CFUN?", None),
        ("AT+CFUN?x", None),
    ],
)
def test_a_captured_command_has_name_form_and_arguments(
    line: str, parts: CommandText | None
) -> None:
    assert read_command(line) == parts
