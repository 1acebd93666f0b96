"""Location as it is declared: both forms of the path, and the bounds of predictions."""

from __future__ import annotations

from typing import Any

import pytest

from agent.standin.core.schema import check
from agent.standin.device_cloud.declared.location import location

CURRENT = "/v1/organizations/{organization}/projects/{project}/location/"
LEGACY = "/v1/location/"
DAY = 17_000
OPERATIONS = {(one.method, one.path): one for one in location(DAY)}


@pytest.mark.contract("D8.3", "D8.4")
def test_an_operation_of_the_current_form_has_a_deprecated_twin_of_the_legacy_form() -> None:
    current = {key: one for key, one in OPERATIONS.items() if key[1].startswith(CURRENT)}
    assert len(current) > 6
    for (method, path), one in current.items():
        twin = OPERATIONS[method, path.replace(CURRENT, LEGACY)]
        assert twin.deprecated
        assert one.deprecated is path.endswith("single-cell")
        assert (twin.bodies, twin.answers) == (one.bodies, one.answers)
        assert set(twin.security).isdisjoint(one.security)
        assert twin.name == f"Legacy{one.name}"


@pytest.mark.parametrize("suffix", ["pgps", "pgnss"])
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"startGpsDay": DAY + 14}, True),
        ({"startGpsDay": DAY + 15}, False),
        ({"predictionIntervalMinutes": 120, "predictionCount": 168}, True),
        ({"predictionIntervalMinutes": 120, "predictionCount": 169}, False),
        ({"predictionIntervalMinutes": 480, "predictionCount": 43}, False),
        ({"predictionCount": 84}, True),
        ({"predictionCount": 85}, False),
    ],
)
def test_no_prediction_is_asked_for_beyond_fourteen_days(
    suffix: str, asked: dict[str, Any], fits: bool
) -> None:
    (predictions,) = (
        one.schema
        for one in OPERATIONS["GET", CURRENT + suffix].parameters
        if one.name == "predictions"
    )
    assert bool(check(asked, predictions)) is not fits
