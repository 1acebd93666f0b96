"""Contexts of packet data are defined, activated and shown as in the manual."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, assert_answered, switched_on


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("AT+CGCONTRDP=0", '+CGCONTRDP: 0,,"iot.example","","","10.160.0.1","10.160.0.2",,,,,1500'),
        ("AT+CGACT?", "+CGACT: 0,1"),
        ("AT+CGPADDR", '+CGPADDR: 0,"10.160.33.51"'),
        ("AT+CGDCONT?", '+CGDCONT: 0,"IP","iot.example","10.160.33.51",0,0'),
    ],
)
def test_a_command_of_the_manual_is_answered(command: str, answer: str) -> None:
    assert_answered(command, answer)


@pytest.mark.parametrize(
    "command",
    [
        "AT+CGCONTRDP=1",
        'AT+CGDCONT=0,"X25"',
        "AT+CGACT=0,0",
        "AT+CGACT=1,0",
        "AT+CGACT=1,2",
        "AT+CGACT=1",
    ],
)
def test_what_the_manual_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on("AT+CFUN=1"), command) == ["ERROR"]


def test_a_context_is_defined_and_removed() -> None:
    kit = switched_on('AT+CGDCONT=1,"IPV6","private"')
    assert ask(kit, "AT+CGDCONT?")[0] == '+CGDCONT: 1,"IPV6","private","",0,0'
    assert ask(kit, "AT+CGACT=1,1") == ["OK"]
    ask(kit, "AT+CGDCONT=1")
    assert ask(kit, "AT+CGDCONT?")[0] == '+CGDCONT: 0,"","","",0,0'


def test_identifiers_of_contexts_are_allocated_and_given_back() -> None:
    kit = switched_on('AT+CGDCONT=1,"IPV6","private"')
    assert [ask(kit, "AT%XNEWCID?")[0] for _ in range(2)] == ["%XNEWCID: 2", "%XNEWCID: 3"]
    assert ask(kit, "AT+CGDCONT=2") == ["OK"]
    assert ask(kit, "AT%XNEWCID?")[0] == "%XNEWCID: 2"
    for _ in range(7):
        ask(kit, "AT%XNEWCID?")
    assert ask(kit, "AT%XNEWCID?") == ["ERROR"]
    assert ask(kit, "AT%XNEWCID=1") == ["ERROR"]


def test_the_id_of_a_connection_is_that_of_an_active_context() -> None:
    assert ask(switched_on("AT+CFUN=1"), "AT%XGETPDNID=0") == ["%XGETPDNID: 0", "OK"]
    assert ask(switched_on("AT+CFUN=1"), "AT%XGETPDNID=1") == ["ERROR"]
    assert ask(switched_on(), "AT%XGETPDNID=0") == ["ERROR"]
    assert ask(switched_on(), "AT%XGETPDNID?") == ["ERROR"]
