"""A typed command: its text, and the parts of a captured one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.command import (
    CommandText,
    Form,
    OkCommand,
    Parameters,
    format_parameters,
    read_command,
)
from at.protocol.encoding import check_line
from at.protocol.errors import UnsafeArgument
from at.protocol.values import split

TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"'))


@dataclass(frozen=True, slots=True)
class SetExample(OkCommand):
    """AT%EXAMPLE=<values>."""

    values: Parameters

    name: ClassVar[str] = "%EXAMPLE"
    form: ClassVar[Form] = Form.SET

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
