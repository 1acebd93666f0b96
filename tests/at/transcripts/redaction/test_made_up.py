"""Made-up values: the shape of the original, valid check digits, the same one for the same."""

from __future__ import annotations

import re
from string import ascii_letters
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.check_digit import luhn_digit
from at.transcripts.redaction.made_up import TEST_TAC, MadeUp

TEN = "0123456789"
# Texts, which are drawn at once: of a pattern each digit is a choice of its own.
DIGITS = {
    "imei": st.text(TEN, min_size=15, max_size=15),
    "imsi": st.text(TEN, min_size=6, max_size=15),
    "iccid": st.text(TEN, min_size=16, max_size=18).map("89".__add__),
    "eid": st.text(TEN, min_size=30, max_size=30).map("89".__add__),
    "uuid": st.uuids().map(str),
    "phone": st.from_regex(r"\+?[0-9]{3,15}", fullmatch=True),
    "serial": st.text(f"{TEN}{ascii_letters}:./_-", min_size=1, max_size=40),
    "digest": st.text(f"{TEN}ABCDEF", min_size=64, max_size=64),
}


@pytest.mark.parametrize("kind", DIGITS)
@given(data=st.data())
def test_a_made_up_value_has_the_shape_of_its_original(kind: str, data: st.DataObject) -> None:
    original = data.draw(DIGITS[kind])
    made_up = MadeUp()
    make = getattr(made_up, kind)
    made = make(original)
    assert len(made) == len(original)
    assert make(original) == made
    assert getattr(MadeUp(), kind)(made) == made, "a made-up value stays"
    if kind == "serial":
        assert re.fullmatch(r"[0-9]+", made)
    else:
        assert re.sub("[0-9A-Fa-f]", "0", made) == re.sub("[0-9A-Fa-f]", "0", original)


@pytest.mark.parametrize("kind", ["imei", "imsi", "iccid", "eid", "uuid", "digest"])
@given(data=st.data())
def test_two_originals_never_become_one(kind: str, data: st.DataObject) -> None:
    make = getattr(MadeUp(), kind)
    size = {"imei": 14, "imsi": 15, "iccid": 18, "eid": 30}.get(kind, 99)
    several = data.draw(st.lists(DIGITS[kind], unique_by=lambda one: one[:size], max_size=8))
    if kind == "imsi":
        several = [one for one in several if len(one) == 15]
    # One that looks made up stays as it is, and may be what another one became before.
    several = [one for one in several if getattr(MadeUp(), kind)(one) != one]
    assert len({make(one)[:size] for one in several}) == len(several)


@given(original=st.from_regex(r"[0-9]{14}", fullmatch=True), version=st.integers(0, 99))
def test_an_imei_and_its_imeisv_are_of_one_device(original: str, version: int) -> None:
    made_up = MadeUp()
    imei = made_up.imei(original + luhn_digit(original))
    imeisv = made_up.imei(f"{original}{version:02}")
    assert imei.startswith(TEST_TAC)
    assert imei[-1] == luhn_digit(imei[:-1])
    assert imeisv[:14] == imei[:14]
    assert imeisv[14:] == f"{version:02}"


@given(original=DIGITS["iccid"])
def test_a_card_keeps_its_issuer_and_gets_a_check_digit(original: str) -> None:
    made = MadeUp().iccid(original)
    assert made[:6] == original[:6]
    assert len(made) == 18 or made[-1] == luhn_digit(made[:-1])


def test_a_card_is_the_same_with_and_without_its_check_digit() -> None:
    made_up = MadeUp()
    whole = made_up.iccid("8944500102198304826")
    assert made_up.iccid("894450010219830482") == whole[:-1]


def test_a_subscriber_keeps_the_network_and_nothing_else() -> None:
    assert MadeUp().imsi("262011234567890") == "262019999900001"
    assert MadeUp().imsi("310410123456789") == "310410999990001"


@given(original=DIGITS["eid"])
def test_the_number_of_an_euicc_has_its_two_check_digits(original: str) -> None:
    assert int(MadeUp().eid(original)) % 97 == 1


@given(original=st.uuids())
def test_a_uuid_is_one_of_version_4(original: UUID) -> None:
    made = UUID(MadeUp().uuid(str(original)))
    assert made.version == 4
    assert made.variant == "specified in RFC 4122"


def test_nothing_of_an_original_can_be_computed_back() -> None:
    """Values are numbered as they come: another device would have got the same one."""
    first, second = MadeUp(), MadeUp()
    assert first.imei("352656100367872") == second.imei("860126041234567")
