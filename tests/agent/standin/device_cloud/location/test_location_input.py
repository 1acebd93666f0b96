"""Malformed scans at the stand-in."""

from __future__ import annotations

import pytest

from tests.support.cloud.standin import StandIn
from tests.support.location.location_scans import PLACES, cells_at, scan_at, url


@pytest.mark.contract("D8.1")
@pytest.mark.parametrize(
    "wrong",
    [
        *({"signalStrength": level} for level in (-50.5, 0, -129, "-50", None, True)),
        {},
        *(
            {"signalStrength": -50, "macAddress": address}
            for address in (
                "40-01-7a-00-00-e3",
                "40:01-7a:00:00:e3",
                "40017a0000e3",
                "40:01:7a:0:0:e3",
            )
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["wifi", "ground-fix"])
async def test_an_access_point_has_a_negative_whole_level_and_an_address_with_colons(
    standin: StandIn, suffix: str, wrong: dict[str, object]
) -> None:
    good = scan_at(PLACES[0])["accessPoints"]
    for points, status in (
        (good, 200),
        ([*good, {"macAddress": "40:01:7a:00:00:01"} | wrong], 422),
    ):
        scan = {"accessPoints": points}
        answer = await standin.client.post(
            url(suffix),
            headers=standin.bearer("organization_auth_token"),
            json={"wifi": scan} if suffix == "ground-fix" else scan,
        )
        assert answer.status_code == status, answer.text


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
