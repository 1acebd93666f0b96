"""The control endpoint: what a test switches while the stand-in runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud.standin import StandIn, running_standin


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
    answer = await standin.control({"rotate_api_key": True})
    assert answer.keys() >= {"clock", "settings", "faults", "plan", "organization_tokens"}
    new = answer["api_key"]

    async def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return (await standin.client.get("/v1/account", headers=headers)).status_code

    old = standin.credentials["api_key"]
    await standin.control({"clock": {"advance_s": 59 * 60}})
    assert [await status(old), await status(new)] == [200, 200]
    await standin.control({"clock": {"advance_s": 2 * 60}})
    assert [await status(old), await status(new)] == [401, 200]


@pytest.mark.contract("D10.7", "O4.2")
async def test_a_token_is_made_shown_once_and_opens_nothing_once_it_is_deleted(
    standin: StandIn,
) -> None:
    wish = {"organization": standin.organization, "name": "ci"}
    made = (await standin.control({"make_organization_token": wish}))["organization_auth_token"]
    listed = (await standin.control({}))["organization_tokens"]
    mine = next(one for one in listed if one["id"] == made["id"])
    assert (mine["organization"], mine["name"]) == (standin.organization, "ci")
    assert made["token"].startswith("oat_")
    assert made["token"] not in str(await standin.control({}))

    async def statuses(token: str) -> list[int]:
        header = {"Authorization": f"Bearer {token}"}
        locate = f"/v1/organizations/{standin.organization}/projects/{standin.project}/location"
        asked = await standin.client.post(f"{locate}/agnss", headers=header, json={"types": [9]})
        managed = await standin.client.get("/api/v0/organizations", headers=header)
        return [asked.status_code, managed.status_code]

    assert await statuses(made["token"]) == [200, 200]
    await standin.control({"delete_organization_token": made["id"]})
    assert await statuses(made["token"]) == [401, 401]
    assert await statuses(standin.credentials["organization_auth_token"]) == [200, 200]
    assert "no token has the id" in str(
        await standin.control({"delete_organization_token": made["id"]}, 400)
    )


@pytest.mark.contract("D10.7", "O4.2")
async def test_an_organization_admin_alone_makes_and_deletes_tokens(standin: StandIn) -> None:
    mine = (await standin.control({}))["organization_tokens"][0]
    assert mine["organization"] == standin.organization
    await standin.control({"members": {standin.organization: "project_manager"}})
    new = {"organization": standin.organization, "name": "ci"}
    for wish in ({"make_organization_token": new}, {"delete_organization_token": mine["id"]}):
        refused = await standin.control(wish, 400)
        assert "the owner is project_manager of acme" in refused["message"]
    assert mine in (await standin.control({}))["organization_tokens"]


@pytest.mark.contract("D10.7")
async def test_a_standin_whose_tokens_were_all_deleted_starts_with_a_new_one(
    tmp_path: Path,
) -> None:
    state = tmp_path / "cloud.sqlite"
    async with running_standin(tmp_path, state=state) as first:
        token = (await first.control({}))["organization_tokens"][0]
        await first.control({"delete_organization_token": token["id"]})
        old = first.credentials["organization_auth_token"]
    async with running_standin(tmp_path, state=state) as second:
        header = second.bearer("organization_auth_token")
        assert (await second.client.get("/api/v0/organizations", headers=header)).is_success
        header = {"Authorization": f"Bearer {old}"}
        gone = await second.client.get("/api/v0/organizations", headers=header)
        assert gone.status_code == 401


@pytest.mark.parametrize(
    "wish",
    [
        {"make_organization_token": {"organization": "nobody", "name": "ci"}},
        {"make_organization_token": {"organization": "umbrella", "name": "ci"}},
        {"make_organization_token": {"organization": "acme", "name": ""}},
        {"make_organization_token": {"organization": "acme"}},
        {"make_organization_token": "acme"},
        {"delete_organization_token": "no-such-id"},
        {"delete_organization_token": None},
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
    await standin.control({"clock": {"advance_s": 86400}})
    await standin.control({"clock": {"freeze": False}})
    first = standin.clock.time()
    assert 1_800_086_400 < first < standin.clock.time()


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
