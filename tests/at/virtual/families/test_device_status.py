"""The modem tells its supply and its temperature."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, assert_answered, switched_on


@pytest.mark.parametrize(
    ("command", "answer"), [("AT%XVBAT", "%XVBAT: 5054"), ("AT%XTEMP?", "%XTEMP: 24")]
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    assert_answered(command, answer)


def test_the_supply_has_no_read_form() -> None:
    assert ask(switched_on("AT+CFUN=1"), "AT%XVBAT?") == ["ERROR"]
