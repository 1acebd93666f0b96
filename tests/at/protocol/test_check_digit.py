"""The check digit of a number."""

from __future__ import annotations

from at.protocol.check_digit import luhn_digit


def test_the_check_digit_is_that_of_the_standard() -> None:
    # 3GPP TS 23.003 annex B.3 and ISO/IEC 7812-1 annex B: two numbers with known digits.
    assert luhn_digit("26053179311383") == "7"
    assert luhn_digit("7992739871") == "3"
