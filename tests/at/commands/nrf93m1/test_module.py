"""What an nRF93M1 says of itself and of what it hears: tables and the logs of its reference."""

from __future__ import annotations

import pytest

from at.commands.nrf93m1.module import MakeRegistrationToken
from at.protocol.errors import ParseError
from at.protocol.notices import Malformed
from tests.support.modem.answers import assert_fields, notice_of, notice_value, value_of
from tests.support.modem.typed_answers import ANSWERS

UUID = "56495254-8f0b-c5c9-e65b-36ed0cf0f295"
TEAM = "2b5ef2ba-8f5c-4a46-b1b4-5d1c7a8b9f10"
ASK = f'AT%REGJWT="{TEAM}"'
(TOKEN_LINE,) = ANSWERS[ASK]
TOKEN = TOKEN_LINE.removeprefix("%REGJWT: ")


def test_the_uuid_is_the_last_line_where_the_first_use_makes_it() -> None:
    making = "%DEVICEUUID: creating device uuid..."
    assert value_of("AT%DEVICEUUID", making, f"%DEVICEUUID: {UUID}") == {"uuid": UUID}
    for lines in ([making], [f"%DEVICEUUID: {UUID}", making], [f"%DEVICEUUID: {UUID}"] * 2):
        with pytest.raises(ParseError):
            value_of("AT%DEVICEUUID", *lines)


def test_a_key_is_one_of_p256_or_none() -> None:
    (line,) = ANSWERS["AT%CLOUDACCESSKEY"]
    key = line.removeprefix("%CLOUDACCESSKEY: ")
    told = value_of("AT%CLOUDACCESSKEY", "%CLOUDACCESSKEY: creating key...", line)
    assert told["public_key"] == key
    assert len(told["sha256"]) == 64
    for broken in (key[:50], key[:-4], "A" * 124, key + "AAAA"):
        with pytest.raises(ParseError):
            value_of("AT%CLOUDACCESSKEY", f"%CLOUDACCESSKEY: {broken}")


@pytest.mark.parametrize("lines", [[TOKEN_LINE], ["%REGJWT:", TOKEN], ["%REGJWT: ", TOKEN]])
def test_a_registration_token_may_stand_on_the_line_behind_its_name(lines: list[str]) -> None:
    for text in (ASK, f"AT%REGJWT={TEAM}"):
        assert_fields(value_of(text, *lines), {"device_uuid": UUID, "team_id": TEAM})


def test_a_registration_token_is_in_no_repr_and_no_json() -> None:
    read = MakeRegistrationToken(TEAM).parse([TOKEN_LINE])
    signature = TOKEN.rpartition(".")[2]
    assert read.token == TOKEN
    assert signature not in repr(read)
    assert signature not in str(read.to_json())


def test_cells_are_told_in_dbm_and_db_in_two_kinds_of_line() -> None:
    serving = '%BCINFOSC: 3300,52,-97,-9,"204","16","005BC435","003B"'
    neighbor = "%BCINFONC: 6200,52,-80,-8"
    cells = value_of("AT%BCINFO", serving, neighbor, neighbor)
    assert_fields(cells["serving"], {"rsrp": -97, "rsrq": -9, "mnc": "16", "tac": "003B"})
    assert [cell["earfcn"] for cell in cells["neighbors"]] == [6200, 6200]
    assert notice_value(serving)["cell_id"] == "005BC435"  # of periodic information
    for lines in ([neighbor, serving], [serving, serving], [serving, "%BCINFONC: 6200,52,-80"]):
        with pytest.raises(ParseError):
            value_of("AT%BCINFO", *lines)


@pytest.mark.parametrize(
    ("line", "ssid"),
    [
        ('%WIFISCAN: (-,,-28,"00:00:5E:00:53:01",11)', ""),
        ('%WIFISCAN:(-,"",-84,"00:00:5E:00:53:01",11)', ""),
        ('%WIFISCAN:(-,"one 9 ",-83,"00:00:5E:00:53:01",11)', "one 9 "),
        ('%WIFISCAN:(-,"a","b (1)",-9",-83,"00:00:5E:00:53:01",11)', 'a","b (1)",-9'),
    ],
)
def test_the_name_of_an_access_point_may_hold_anything(line: str, ssid: str) -> None:
    (point,) = value_of("AT%WIFISCAN=12000,1,5,3,0", line)["networks"]
    assert_fields(point, {"ssid": ssid, "mac": "00:00:5e:00:53:01", "channel": 11})


@pytest.mark.parametrize(
    "line",
    [
        '%WIFISCAN: (-,,-28,"00:00:5E:00:53:01",11',
        '%WIFISCAN: (-,,28,"00:00:5E:00:53:01",11)',
        '%WIFISCAN: (-,,-28,"00:00:5E:00:53",11)',
        '%WIFISCAN: (-,name,-28,"00:00:5E:00:53:01",11)',
        '%WIFISCAN: (-,,-28,"00:00:5E:00:53:01",15)',
    ],
)
def test_a_damaged_access_point_is_none(line: str) -> None:
    with pytest.raises(ParseError):
        value_of("AT%WIFISCAN", line)


def test_a_damaged_cell_is_none() -> None:
    assert isinstance(notice_of('%BCINFOSC: 3300,52,-97,-9,"204","16","005BC43","003B"'), Malformed)


def test_no_access_point_is_an_empty_answer() -> None:
    assert value_of("AT%WIFISCAN") == {"networks": []}
