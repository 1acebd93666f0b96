"""A change of place, and how the device cloud is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.location.locator import MOVED_M, Fix, LocationMethod, moved, position_message
from agent.location.position import Position

NOW = datetime(2026, 1, 2, tzinfo=UTC)
METRE = 1 / 111_195  # of latitude


def fix(lat: float, lon: float = 10.0, uncertainty_m: float | None = 20.0) -> Fix:
    return Fix(NOW, LocationMethod.WIFI, Position(lat, lon, uncertainty_m, "WIFI"), 0, 3, ())


def test_the_first_place_is_a_change() -> None:
    assert moved(None, fix(63.0))


@pytest.mark.parametrize(
    ("metres", "uncertainties", "elsewhere"),
    [
        (0, (20, 20), False),
        (MOVED_M - 1, (5, 5), False),
        (MOVED_M + 1, (5, 5), True),
        (500, (300, 250), False),
        (560, (300, 250), True),
        (MOVED_M + 1, (None, None), True),
    ],
)
def test_another_place_is_one_that_uncertainty_does_not_explain(
    metres: float, uncertainties: tuple[float | None, float | None], elsewhere: bool
) -> None:
    before, after = uncertainties
    reported = fix(63.0, uncertainty_m=before).to_json()
    assert moved(reported, fix(63.0 + metres * METRE, uncertainty_m=after)) is elsewhere


def test_a_fix_that_was_only_stored_is_no_place() -> None:
    assert not moved(None, Fix(NOW, LocationMethod.WIFI, None, 0, 3, ()))


@pytest.mark.parametrize(
    "reported",
    [
        {"lat": float("inf"), "lon": 10.0},
        {"lat": 63.0, "lon": float("nan")},
        {"lat": 63.0, "lon": 10.0, "uncertainty": float("inf")},
        {"lat": 10**400, "lon": 10.0},
    ],
    ids=["infinite", "no number", "uncertain without end", "an integer of 400 digits"],
)
def test_a_memory_of_no_place_on_earth_is_told_anew(reported: dict[str, object]) -> None:
    assert moved(reported, fix(63.0))


@given(
    st.none() | st.dictionaries(
        st.sampled_from(["lat", "lon", "uncertainty"]),
        st.none() | st.text(max_size=3) | st.floats() | st.integers()
        | st.lists(st.integers(), max_size=1),
    )
)  # fmt: skip
def test_a_memory_that_is_damaged_is_a_change_or_none_and_never_a_failure(
    reported: dict[str, object] | None,
) -> None:
    assert moved(reported, fix(63.0)) in {True, False}


def test_the_message_is_a_device_message_with_its_time() -> None:
    message = position_message(fix(63.0))
    assert json.loads(json.dumps(message)) == {
        "appId": "GROUND_FIX",
        "messageType": "DATA",
        "data": {"lat": 63.0, "lon": 10.0, "uncertainty": 20.0, "fulfilledWith": "WIFI"},
        "ts": 1767312000000,
    }
    assert position_message(fix(1.0, uncertainty_m=None))["data"] == {
        "lat": 1.0, "lon": 10.0, "fulfilledWith": "WIFI",
    }  # fmt: skip
