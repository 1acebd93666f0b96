"""Files of a SIM that name somebody."""

from __future__ import annotations

import pytest

from at.transcripts.redaction.made_up import MadeUp
from at.transcripts.redaction.sim_files import other_content

ICCID = "98445400012091384028"  # 89444500102119830482
IMSI = "082926101132547698"  # nine digits of it odd: 9 262011123456789


def changed(content: str, arguments: str) -> str:
    made_up = MadeUp()
    return other_content(content, arguments, made_up.iccid, made_up.imsi)


def test_the_digits_of_a_card_and_a_subscriber_are_changed_in_their_half_bytes() -> None:
    card = changed(ICCID, "176,12258,0,0,10")
    assert card[:6] == ICCID[:6]
    assert card != ICCID
    assert len(card) == len(ICCID)
    other = changed(IMSI, "176,28423,0,0,9")
    assert other[:8] == "08292610"
    assert other != IMSI
    assert len(other) == len(IMSI)


def test_the_padding_of_a_card_number_stays() -> None:
    other = changed("9894540001209138402F"[:18] + "F2", "176,12258,0,0,10")
    assert other[-2] == "F"
    assert len(other) == 20


@pytest.mark.parametrize("content", [ICCID, IMSI])
def test_they_are_known_by_their_look_where_the_command_is_not(content: str) -> None:
    assert changed(content, "") != content


def test_a_part_of_a_number_loses_its_digits() -> None:
    assert changed("0012", "176,12258,0,4,2") == "9999"
    assert changed("1032", "176,28423,0,3,2") == "9999"


def test_files_with_places_and_own_numbers_are_emptied() -> None:
    assert changed("0102030405", "178,28480,1,4,5") == "FFFFFFFFFF"
    assert changed("A1B2", "176,28542,0,0,2") == "FFFF"


def test_other_files_stay() -> None:
    assert changed("00000002", "176,28589,0,0,4") == "00000002"
    assert changed("", "") == ""
