"""The clock has the time of the network or of +CCLK, and no time before."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, switched_on


def test_the_time_of_the_network_comes_with_registration() -> None:
    modem = switched_on("AT%XTIME=1")
    assert ask(modem, "AT+CCLK?") == ["ERROR"]
    assert '%XTIME: "40","32114122310240","00"' in ask(modem, "AT+CFUN=1")
    assert ask(modem, "AT+CCLK?")[0] == '+CCLK: "23/11/14,23:13:20+04"'


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("25/01/02,03:04:05+00", "25/01/02,04:04:05+04"),
        ("25/01/02,03:04:05", "25/01/02,04:04:05+04"),
        ("25/01/02,03:04:05-32", "25/01/02,12:04:05+04"),
    ],
)
def test_a_time_is_set_and_shown_in_the_zone_of_the_network(given: str, shown: str) -> None:
    modem = switched_on(f'AT+CCLK="{given}"')
    assert ask(modem, "AT+CCLK?")[0] == f'+CCLK: "{shown}"'


@pytest.mark.parametrize(
    "given",
    ["", "25/13/02,03:04:05+00", "25/01/02,03:04:05*00", "25/01/02", "25/01/02,03:04:05+0\xb2"],
)
def test_a_time_that_is_none_is_refused(given: str) -> None:
    assert ask(switched_on(), f'AT+CCLK="{given}"') == ["ERROR"]
