"""The typed command for a command text, and its time limit."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.catalog import TYPES, command_of, readers_of
from at.protocol import notices
from at.protocol.command import Command, Form
from at.protocol.errors import ParseError
from at.protocol.line.answer_or_notice import owner_of


@given(
    st.text(max_size=80), st.sampled_from(["AT+COPS=?", "AT%XMONITOR", "AT+CWLAP", "AT%JWT=0,9"])
)
def test_any_line_is_read_or_refused(text, command):
    name = command[2:].partition("=")[0]
    with contextlib.suppress(ParseError):
        command_of(command).parse([f"{name}: {text}"])


def test_no_registered_notice_is_taken_for_the_answer_to_its_own_subscription() -> None:
    # Serial Modem answers two set commands with a line of the name that its notices have, too.
    # An nRF93M1 gives results before OK or after it; no command is called %FOTA or %BCINFOSC.
    early_or_late = {"%NRFCLOUDLOCATION", "%NRFCLOUDMESSAGE", "%BCINFOSC", "%BCINFONC", "%FOTA"}
    answers = {"#XFOTA", "#XMODEMRESET", *early_or_late}
    taken = {name for name in notices._parsers if owner_of(f"AT{name}=1").owns(f"{name}: 1")}
    assert taken == answers


def _every_type(kind: type[Command[object]] = Command) -> set[type[Command[object]]]:
    return {kind, *(below for each in kind.__subclasses__() for below in _every_type(each))}


def test_a_command_that_sends_no_parameters_takes_none():
    dropped = [
        kind.__name__
        for kind in _every_type()
        if kind.__module__.startswith("at.")
        and kind.name
        and kind.form is not Form.SET
        and kind.encode is Command.encode
        and kind.__struct_fields__
    ]
    assert dropped == []


@pytest.mark.parametrize("arguments", ["", "1", '"x"', "1,2", ",,,", "(1)", "-1", '"",""'])
@pytest.mark.parametrize("form", list(Form))
def test_any_arguments_of_a_known_name_are_read_or_left(form: Form, arguments: str) -> None:
    for name, its_form in TYPES:
        if its_form is form:
            command_of(f"AT{name}={arguments}")
            readers_of(name)
