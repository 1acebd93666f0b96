"""Keys and tokens of the modem, and how it refuses them."""

from __future__ import annotations

import json

import pytest

from tests.support.modem.virtual_modems import printed, quoted, switched_on, unpadded


def test_without_a_time_a_token_comes_without_its_times() -> None:
    modem = switched_on(faults=("no-time",))
    printed(modem, "AT+CFUN=1")
    assert printed(modem, "AT+CCLK?") == "ERROR\r\n"
    claims = json.loads(unpadded(quoted(printed(modem, "AT%JWT=0,600")).split(".")[1]))
    assert set(claims) == {"iss", "jti"}
    assert printed(modem, 'AT+CCLK="23/11/14,23:13:20+04"') == "OK\r\n"
    claims = json.loads(unpadded(quoted(printed(modem, "AT%JWT=0,600")).split(".")[1]))
    assert claims["iat"] == 1_700_000_000


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("AT%JWT=1,600", 50),
        ('AT%JWT=0,600,"",""' + ",7", 50),
        ('AT%JWT=0,600,"","",7,2', 513),
        ('AT%JWT=0,600,"","",7,3', 50),
        ('AT%JWT=0,600,"","",8,2', 514),
        ("AT%JWT=0,600,bare", 50),
    ],
)
def test_a_token_that_cannot_be_made_is_refused_by_number(line: str, error: int) -> None:
    modem = switched_on()
    printed(modem, "AT+CMEE=1")
    printed(modem, 'AT%CMNG=0,8,2,"no key at all"')
    assert printed(modem, line) == f"+CME ERROR: {error}\r\n"


def test_firmware_before_its_time_knows_no_keys() -> None:
    modem = switched_on(faults=("old-firmware",))
    printed(modem, "AT+CMEE=1")
    assert printed(modem, "AT+CGMR").startswith("mfw_nrf9160_1.2.8")
    for line in ("AT%JWT", "AT%KEYGEN=7,2,0", "AT%ATTESTTOKEN"):
        assert printed(modem, line) == "+CME ERROR: 0\r\n"
