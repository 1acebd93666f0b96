from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.fota.versions import is_older, parse_version, same_version

NUMBERS = st.integers(0, 65535)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("v2.0.1", "2.0.1", True),
        ("2.0.1", "2.0.1+0", True),
        ("2.0.1.4", "2.0.1+4", True),
        ("2.0.1.4", "2.0.1+0", False),
        ("2.0.1-rc1", "2.0.1+0", True),
        ("2.0.1-rc1", "2.0.1-rc2", False),
        ("2.0.1", "2.0.10", False),
        ("2.0", "2.0.0", True),
        ("nightly", "nightly", True),
        ("nightly", "2.0.1", False),
        ("mfw_nrf9160_1.3.6", "mfw_nrf9160_1.3.6", True),
        ("mfw_nrf9160_1.3.6", "1.3.6", True),
        ("mfw_nrf9160_1.3.6", "mfw_nrf9160_1.3.5", False),
        ("mfw_nrf9160_1.3.6", "mfw_nrf9160_1.3.6-FOTA-TEST", False),
        ("mfw_nrf9160_1.3.6-FOTA-TEST", "1.3.6-fota-test", True),
        ("mfw_nrf9160_1.3.6-FOTA-TEST", "1.3.6", False),
        ("v1.0.0-3-gabcdef0", "v1.0.0-3-gabcdef0", True),
    ],
)
def test_versions_are_the_same_by_their_numbers(one: str, other: str, same: bool) -> None:
    assert same_version(one, other) is same
    assert same_version(other, one) is same


def test_versions_compare_as_numbers_not_as_text() -> None:
    assert is_older("1.9.0", "1.10.0") is True
    assert is_older("1.10.0", "1.9.0") is False
    assert is_older("1.0.0+1", "1.0.0+2") is True
    assert is_older("nightly", "1.0.0") is None


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_order_is_that_of_the_numbers(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    left, right = (".".join(map(str, numbers)) for numbers in (one, other))
    assert is_older(left, right) is (one < other)
    assert same_version(left, right) is (one == other)


@given(st.text(max_size=60))
def test_any_text_is_read_or_is_no_version(text: str) -> None:
    found = parse_version(text)
    assert found is None or len(found.core) == 3
    assert same_version(text, text)
