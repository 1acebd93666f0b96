"""The control endpoint: what a test switches while the stand-in runs."""

from __future__ import annotations

from typing import Any

import pytest
from standin import StandIn


async def organizations(standin: StandIn, secret: str) -> list[str]:
    answer = await standin.client.get(
        "/api/v0/organizations",
        auth=(standin.credentials["user_email"], standin.credentials[secret]),
    )
    return [one["slug"] for one in answer.json()["data"]]


@pytest.mark.contract("O4.5")
async def test_single_sign_on_and_removal_close_an_organization_to_a_user_key(
    standin: StandIn,
) -> None:
    slug = standin.organization
    assert slug in await organizations(standin, "user_api_key")
    await standin.control({"single_sign_on": {slug: True}})
    assert slug not in await organizations(standin, "user_api_key")
    assert slug in await organizations(standin, "user_password")
    await standin.control({"single_sign_on": {slug: False}, "members": {slug: None}})
    assert slug not in await organizations(standin, "user_password")
    await standin.control({"members": {slug: "member"}})
    assert slug in await organizations(standin, "user_api_key")


@pytest.mark.contract("D10.1")
async def test_a_rotated_key_lives_on_for_sixty_minutes(standin: StandIn) -> None:
    new = (await standin.control({"rotate_api_key": True}))["api_key"]

    async def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return (await standin.client.get("/v1/account", headers=headers)).status_code

    old = standin.credentials["api_key"]
    await standin.control({"clock": {"advance_s": 59 * 60}})
    assert [await status(old), await status(new)] == [200, 200]
    await standin.control({"clock": {"advance_s": 2 * 60}})
    assert [await status(old), await status(new)] == [401, 200]


@pytest.mark.parametrize(
    "wish",
    [
        {"members": {"acme": "emperor"}},
        {"members": {"nobody": "member"}},
        {"single_sign_on": {"nobody": True}},
        {"single_sign_on": [1]},
        {"clock": {"set": "noon"}},
        {"clock": {"set": 1e300}},
        {"clock": {"set": 0}},
        {"clock": {"advance_s": -1e18}},
        {"clock": {"backwards": True}},
        {"settings": {"devices": "many"}},
        {"settings": {"devices": -1}},
        {"settings": {"bulk_s": 1e9}},
        {"settings": {"legacy_location": 0}},
        {"settings": {"no-such": 1}},
        {"role": "emperor"},
        {"plan": None},
        {"location": {"acme/kits": "no"}},
        {"location": {"acme/nothing": True}},
        {"rotate_api_key": "now"},
        {"trial_started": "noon"},
        {"no-such": 1},
    ],
    ids=str,
)
async def test_a_wish_that_cannot_be_is_refused(standin: StandIn, wish: dict[str, Any]) -> None:
    before = await standin.control({"clock": {"freeze": True}})
    assert (await standin.control(wish, 400))["code"] == 40000
    assert await standin.control({}) == before


async def test_a_clock_that_stood_still_runs_on_from_there(standin: StandIn) -> None:
    await standin.control({"clock": {"set": 1_800_000_000, "freeze": True}})
    assert standin.clock.time() == standin.clock.time() == 1_800_000_000
    await standin.control({"clock": {"freeze": False}})
    first = standin.clock.time()
    assert 1_800_000_000 < first < standin.clock.time()


async def test_control_needs_its_own_token_and_moves_the_clock(standin: StandIn) -> None:
    refused = await standin.client.get("/control", headers=standin.bearer("api_key"))
    assert refused.status_code == 401
    before = standin.clock.time()
    answer = await standin.client.post(
        "/control", headers=standin.bearer("control_token"), json={"clock": {"advance_s": 86400}}
    )
    assert answer.status_code == 200
    assert standin.clock.time() - before >= 86400
    for wrong in (
        {"nothing": 1},
        {"settings": {"x": 1}},
        {"clock": 3},
        {"settings": {"bulk_s": True}},
    ):
        answer = await standin.client.post(
            "/control", headers=standin.bearer("control_token"), json=wrong
        )
        assert answer.status_code == 400, wrong
