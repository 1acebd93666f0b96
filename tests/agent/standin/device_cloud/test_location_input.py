"""Malformed scans at the stand-in."""

from __future__ import annotations

import pytest
from location_scans import url
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
