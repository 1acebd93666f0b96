"""Positions in the made-up radio world (clause D8)."""

from __future__ import annotations

import pytest

from at.virtual.radio_world import Coordinates
from tests.support.cloud.standin import StandIn
from tests.support.location.location_scans import PLACES, cells_at, scan_at, url


@pytest.mark.contract("D8.1", "D8.2")
@pytest.mark.parametrize("what", ["wifi", "cell", "ground-fix"])
async def test_a_scan_comes_back_as_the_place_where_it_was_taken(
    standin: StandIn, what: str
) -> None:
    for place in PLACES:
        scan = {
            "wifi": scan_at(place),
            "cell": cells_at(place),
            "ground-fix": {**cells_at(place), "wifi": scan_at(place)["accessPoints"]},
        }[what]
        answer = await standin.client.post(
            url(what), headers=standin.bearer("organization_auth_token"), json=scan
        )
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert place.distance_m(Coordinates(found["lat"], found["lon"])) <= found["uncertainty"]
        assert found["uncertainty"] < 500
        assert found["fulfilledWith"] == {"cell": "MCELL"}.get(what, "WIFI")
