"""Malformed scans at the stand-in."""

from __future__ import annotations

import pytest
from location_scans import PLACES, cells_at, url
from standin import StandIn


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"accessPoints": 3},
        {"accessPoints": [{}, {}]},
        {"accessPoints": [{"macAddress": "zz"}] * 2},
        {"accessPoints": [{"macAddress": "00:11:22:33:44:55", "signalStrength": 5}] * 2},
        {"accessPoints": [{"macAddress": "00:11:22:33:44:55", "channel": 1, "frequency": 2}] * 2},
    ],
)
async def test_a_malformed_scan_is_refused(standin: StandIn, body: object) -> None:
    answer = await standin.client.post(
        url("wifi"), headers=standin.bearer("organization_auth_token"), json=body
    )
    assert answer.status_code in {400, 422}


async def test_a_whole_number_may_be_written_with_a_point(standin: StandIn) -> None:
    def with_points(value: object) -> object:
        if isinstance(value, dict):
            return {name: with_points(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [with_points(inner) for inner in value]
        return float(value) if isinstance(value, int) else value

    answers = []
    for body in (cells_at(PLACES[0]), with_points(cells_at(PLACES[0]))):
        answer = await standin.client.post(
            url("ground-fix"), headers=standin.bearer("organization_auth_token"), json=body
        )
        assert answer.status_code == 200, answer.text
        answers.append(answer.json())
    assert answers[0] == answers[1]
