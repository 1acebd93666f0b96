"""The grammar of firmware versions, and their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from at.protocol.errors import ParseError
from at.protocol.firmware_version import read_firmware

pytestmark = [pytest.mark.contract("D1.3"), pytest.mark.contract("C4")]


def test_the_parts_of_a_version_are_told():
    firmware = read_firmware("mfw_nrf9151-ntn_1.0.0-1.alpha")
    assert (firmware.chip, firmware.variants) == ("nrf9151", ("ntn",))
    assert (firmware.version, firmware.suffix) == ((1, 0, 0), "1.alpha")


@pytest.mark.parametrize(
    "text", ["mfw_nrf9160", "mfw_nrf9160_1.3.0_2.0.0", "1.3.0_nrf9160", "mfw_nrf9160_01.3.0", ""]
)
def test_a_text_that_proves_no_version_is_refused(text):
    with pytest.raises(ParseError):
        read_firmware(text)


@given(st.tuples(*[st.integers(0, 999)] * 3), st.tuples(*[st.integers(0, 999)] * 3))
def test_versions_compare_as_numbers(found, wanted):
    text = "mfw_nrf9160_" + ".".join(map(str, found))
    assert read_firmware(text).at_least(wanted) is (found >= wanted)
