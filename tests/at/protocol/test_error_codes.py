"""What error results mean and what to try."""

from __future__ import annotations

import pytest

from at.protocol.error_codes import describe


@pytest.mark.parametrize(
    ("code", "meaning", "way_out"),
    [
        (10, "SIM not inserted", "insert a SIM"),
        (513, "not found", "AT%CMNG=1"),
        (514, "not allowed", "private key"),
        (515, "memory full", "`cellagent modem at 'AT%CMNG=1'` lists"),
        (518, "not allowed in active state", "modem off --flight"),
        (519, "already exists", "delete"),
        (528, "power-off warning", "voltage"),
        (516, "radio connection is active", "idle"),
        (521, "partial", ""),
        (522, "band configuration", "AT%XBANDLOCK=0"),
        (517, "Nordic error 517", ""),
        (599, "Nordic error 599", ""),
        (600, "(error 600)", ""),
        (108, "other services not allowed", ""),
        (114, "in this PLMN", ""),
        (177, "operator determined barring", ""),
        (180, "session management cause 180", ""),
        (233, "session management cause 233", ""),
        (234, "(error 234)", ""),
        (9999, "error 9999", ""),
        (-1, "error -1", ""),
    ],
)
def test_a_code_has_its_name_and_its_way_out(code, meaning, way_out):
    message, hint = describe("+CME ERROR", code)
    assert meaning in message
    assert str(code) in message
    assert way_out in hint


@pytest.mark.parametrize(
    ("code", "meaning", "way_out"),
    [
        (310, "SIM not inserted", "insert a SIM"),
        (314, "SIM busy", "try again"),
        (316, "SIM PUK required", "PUK"),
        (331, "no network service", "modem why"),
        (513, "not found", ""),
    ],
)
def test_an_error_of_messages_that_is_about_the_sim_or_the_network_has_its_way_out(
    code, meaning, way_out
):
    message, hint = describe("+CMS ERROR", code)
    assert meaning in message
    assert (way_out in hint) if way_out else not hint


def test_texts_and_empty_reasons_are_told():
    assert "SIM busy" in describe("+CME ERROR", None, "SIM busy")[0]
    assert "try again" in describe("+CME ERROR", None, "SIM busy")[1]
    assert "no reason" in describe("+CME ERROR")[0]
    assert "AT+CMEE=1" in describe("ERROR")[1]
    assert "SIM" in describe("ERROR", command="+CPIN")[1]
    assert "no IMEI was written" in describe("ERROR", command="+CGSN")[1]
    assert "invalid PDU" in describe("+CMS ERROR", 304)[0]
    assert "not found" in describe("+CMS ERROR", 513)[0]
