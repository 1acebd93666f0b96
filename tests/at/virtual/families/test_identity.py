"""The modem says who it is: maker, model, firmware, IMEI, UUID."""

from __future__ import annotations

import pytest

from tests.support.modem.virtual_modems import ask, switched_on


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("AT+CGMI", "Nordic Semiconductor ASA"),
        ("AT+CGMM", "nRF9160-SICA"),
        ("AT+CGMR", "mfw_nrf9160_1.3.7"),
        ("AT%SHORTSWVER", "%SHORTSWVER: nrf9160_1.3.7"),
        ("AT%HWVERSION", "%HWVERSION: nRF9160 SICA B1A"),
        ("AT+CGSN", "352656100367872"),
        ("AT+CGSN=1", '+CGSN: "352656100367872"'),
        ("AT+CGSN=2", '+CGSN: "3526561003678725"'),
        ("AT+CGSN=3", '+CGSN: "25"'),
    ],
)
def test_each_command_gives_its_part(command: str, line: str) -> None:
    modem = switched_on(model="nrf9160", imei="35265610036787")
    assert ask(modem, command) == [line, "OK"]


@pytest.mark.parametrize("command", ["AT+CGMI?", "AT+CGSN?", "AT+CGSN=4", "AT%HWVERSION=1"])
def test_a_form_that_a_command_does_not_have_is_an_error(command: str) -> None:
    assert ask(switched_on(), command) == ["ERROR"]


def test_the_first_chip_does_not_give_its_uuid() -> None:
    newer = switched_on(model="nrf9151")
    assert ask(newer, "AT%DEVICEUUID")[0] == f"%DEVICEUUID: {newer.kit.saved.uuid}"
    first = switched_on("AT+CMEE=1", model="nrf9160")
    assert ask(first, "AT%DEVICEUUID") == ["+CME ERROR: 0"]
