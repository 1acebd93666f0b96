"""The firmware gate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.commands.identity import ReadRevision, Revision
from at.firmware_gate import firmware_verdict, read_verdict, require_firmware
from at.protocol.errors import CommandRejected, FirmwareRefused, ParseError
from at.protocol.firmware_version import read_firmware

pytestmark = [pytest.mark.contract("D1.3"), pytest.mark.contract("C4")]


class Telling:
    """A modem that answers +CGMR with a text; with an error, it refuses."""

    def __init__(self, text):
        self.text = text

    async def send(self, command):
        assert command == ReadRevision()
        if isinstance(self.text, Exception):
            raise self.text
        return Revision(self.text)


@pytest.mark.parametrize(
    "refusal", [CommandRejected("AT+CGMR was refused"), ParseError("two lines")], ids=repr
)
async def test_a_modem_that_tells_no_version_is_refused(refusal):
    verdict = await read_verdict(Telling(refusal))
    assert (verdict.allowed, verdict.text) == (False, "")
    assert str(refusal) in verdict.reason
    with pytest.raises(FirmwareRefused):
        await require_firmware(Telling(refusal))


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("mfw_nrf9160_1.3.0", True),
        ("mfw_nrf9160_1.3.7", True),
        ("mfw_nrf9160_1.10.0", True),
        ("mfw_nrf9160_1.3.0-FOTA-TEST", True),
        ("mfw_nrf91x1_2.0.4", True),
        ("nrf9160_1.3.2", True),
        ("mfw_nrf9151-ntn_1.0.0-1.alpha", True),
        ("mfw_nrf9160_1.3.1-1.alpha", True),
        ("mfw_nrf93m1_1.5.0", True),
        ("mfw_nrf93m1_1.4.1", True),
        ("mfw_nrf93m1_0.9.2", True),
        ("mfw_nrf93m1_1.3.0-1.alpha", True),
        ("mfw_nrf9160_1.2.9", False),
        ("mfw_nrf9160_1.2.8-FOTA-TEST", False),
        ("mfw_nrf9160_0.7.0-23.prealpha", False),
        ("mfw_nrf9160_1.3.0-1.alpha", False),
        ("mfw-pti_nrf91x1_2.3.8", False),
        ("mfw-nr+_nrf91x1_1.1.0", False),
        ("mfw-nr+-phy_nrf91x1_2.0.0", False),
        ("mfw-nr+_nrf91x1_0.0.0-110.nr+-test", False),
        ("", False),
        ("ERROR", False),
        ("+CSCON: 1", False),
        ("mfw_nrf9160_1.3", False),
        ("mfw_nrf9160_1.3.0_1.2.0", False),
        ("mfw_nrf9160_1234.3.0", False),
        ("mfw_nrf91x1_2.00.4", False),
        ("mfw_nrf9160_01.3.7", False),
        ("SARA-R510M8S-00B", False),
        ("nRF93M1-LABA-A0 (01)", False),
        ("mfw_nrf93m10_0.9.2", False),
        ("mfw-pti_nrf93m1_1.5.0", False),
        ("mfw_nrf9160-nrf93m1_1.2.7", False),
    ],
)
async def test_the_gate_lets_pass_what_may_make_device_calls(text, allowed):
    verdict = firmware_verdict(text)
    assert verdict.allowed is allowed
    modem = Telling(text)
    assert await read_verdict(modem) == verdict
    if allowed:
        await require_firmware(modem)
        assert not verdict.reason
    else:
        assert verdict.reason
        assert verdict.hint
        with pytest.raises(FirmwareRefused) as refused:
            await require_firmware(modem)
        assert refused.value.hint == verdict.hint


def test_a_family_that_restarted_its_numbers_passes_with_a_note():
    assert "1.3.0" in firmware_verdict("mfw_nrf9151-ntn_1.0.0-1.alpha").note
    assert firmware_verdict("mfw_nrf9160_1.3.7").note == ""


@pytest.mark.parametrize("version", ["0.9.2", "1.4.1", "1.5.0"])
def test_a_chip_whose_versions_are_counted_by_themselves_passes_with_a_note(version):
    verdict = firmware_verdict(f"mfw_nrf93m1_{version}")
    assert "another chip" in verdict.note
    assert not verdict.reason


@pytest.mark.parametrize(
    ("text", "older"),
    [
        ("mfw_nrf9160_1.2.7", True),
        ("mfw_nrf9160_1.3.0-1.alpha", True),
        ("mfw_nrf9160_1.3.0", False),
        ("mfw-pti_nrf91x1_1.2.0", False),
        ("mfw-nr+_nrf91x1_1.1.0", False),
        ("ERROR", False),
    ],
)
def test_a_firmware_that_is_refused_for_its_age_is_told_from_the_others(text, older):
    assert firmware_verdict(text).older is older


@pytest.mark.contract("D1.3")
def test_what_is_no_firmware_is_shown_as_far_as_it_fits():
    assert f"({'x' * 60!r})" in firmware_verdict("x" * 61).reason
    assert "('nothing')" in firmware_verdict(" ").reason


@given(st.text(max_size=40))
def test_no_text_gets_past_the_gate_unread(text):
    verdict = firmware_verdict(text)
    if verdict.allowed:
        assert read_firmware(text)
    else:
        assert verdict.reason
    try:
        read_firmware(text)
    except ParseError:
        assert not verdict.allowed
