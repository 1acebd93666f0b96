"""The credential store keeps the rules of the manual."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.modem.virtual_modems import ask, printed, switched_on


def test_the_store_keeps_the_manuals_rules() -> None:
    modem = switched_on()
    printed(modem, "AT+CMEE=1")
    written = "-----BEGIN TEST-----\r\nA\nB\r\n-----END TEST-----\r\n"
    assert printed(modem, f'AT%CMNG=0,7,0,"{written}"') == "OK\r\n"
    sha = hashlib.sha256(written.encode()).hexdigest().upper()
    assert printed(modem, "AT%CMNG=1,7") == f'%CMNG: 7,0,"{sha}"\r\nOK\r\n'
    assert printed(modem, "AT%CMNG=2,7,0") == f'%CMNG: 7,0,"{sha}","{written}"\r\nOK\r\n'
    assert printed(modem, "AT%CMNG=3,7,1") == "+CME ERROR: 513\r\n"
    printed(modem, "AT%KEYGEN=7,2,0")
    assert printed(modem, "AT%KEYGEN=7,2,0") == "+CME ERROR: 519\r\n"
    assert printed(modem, 'AT%CMNG=0,7,2,"x"') == "+CME ERROR: 519\r\n"
    assert printed(modem, "AT%CMNG=2,7,2") == "+CME ERROR: 514\r\n"
    printed(modem, "AT+CFUN=1")
    for line in ('AT%CMNG=0,7,1,"x"', "AT%CMNG=3,7,0", "AT%KEYGEN=8,2,0"):
        assert printed(modem, line) == "+CME ERROR: 518\r\n"
    assert printed(modem, "AT%CMNG=1,7,0").endswith("OK\r\n")
    printed(modem, "AT+CFUN=4")
    assert printed(modem, "AT%CMNG=3,7,0") == "OK\r\n"
    assert printed(modem, "AT%CMNG=1,7,0") == "OK\r\n"
    assert printed(modem, "AT%CMNG=3,4294967294,6") == "ERROR\r\n"


def test_a_list_is_filtered_by_tag_and_by_type() -> None:
    modem = switched_on('AT%CMNG=0,7,0,"ca"', 'AT%CMNG=0,7,1,"client"', 'AT%CMNG=0,8,0,"ca"')
    of_host = [line for line in ask(modem, "AT%CMNG=1") if "%CMNG: 4294967" not in line]
    assert [line.split(",")[:2] for line in of_host[:-1]] == [
        ["%CMNG: 7", "0"],
        ["%CMNG: 7", "1"],
        ["%CMNG: 8", "0"],
    ]
    assert len(ask(modem, "AT%CMNG=1,7")) == 3
    assert len(ask(modem, "AT%CMNG=1,7,1")) == 2
    assert ask(modem, "AT%CMNG=1,9") == ["OK"]


def test_the_store_has_an_end() -> None:
    modem = switched_on("AT+CMEE=1", *(f'AT%CMNG=0,{tag},0,"x"' for tag in range(64)))
    assert ask(modem, 'AT%CMNG=0,64,0,"x"') == ["+CME ERROR: 515"]
    assert ask(modem, 'AT%CMNG=0,63,0,"y"') == ["OK"]  # replaces what is there
    assert modem.kit.saved.writes == 65


@pytest.mark.parametrize("kind", [6, 7, 8, 10, 11])
def test_a_type_that_is_not_the_hosts_is_not_written(kind: int) -> None:
    assert ask(switched_on(), f'AT%CMNG=0,7,{kind},"x"') == ["ERROR"]
