"""Account paths at the stand-in: D9.4, D10.4, D10.9."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.cloud.standin import StandIn

PATHS = (("GET", "/v1/account/service-token"), ("POST", "/v1/account/service-key-and-token"))


async def statuses(standin: StandIn) -> list[int]:
    header = standin.bearer("api_key")
    return [(await standin.client.request(m, p, headers=header)).status_code for m, p in PATHS]


@pytest.mark.contract("D9.4", "D10.4")
async def test_the_deprecated_paths_can_be_removed_after_the_first_of_july_2026(
    standin: StandIn,
) -> None:
    await standin.control(
        {
            "clock": {"set": datetime(2026, 7, 1, 23, 59, tzinfo=UTC).timestamp(), "freeze": True},
            "settings": {"account_paths": False},
        }
    )
    assert await statuses(standin) == [200, 200]
    standin.clock.advance(60)
    assert await statuses(standin) == [404, 404]
    await standin.control({"settings": {"account_paths": True}})
    assert await statuses(standin) == [200, 200]


@pytest.mark.contract("D1.1")
async def test_an_account_has_the_names_that_real_answers_have(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/account", headers=standin.bearer("api_key"))
    account = answer.json()
    assert account.keys() == {
        "mqttEndpoint", "mqttTopicPrefix", "team", "role", "userId", "tags", "plan", "$meta"
    }  # fmt: skip
    assert account["team"] == {"tenantId": standin.team_id, "name": "Acme kits"}
    plan = account["plan"]
    assert plan["proxyUsageDeclarations"] == {"AGPS": 0, "PGPS": 0, "GROUND_FIX": 0}
    assert {(key["service"], key["enabled"]) for key in plan["serviceKeys"]} == {
        ("location", True),
        ("fota", True),
        ("device", True),
    }


@pytest.mark.contract("D10.9")
async def test_a_service_key_needs_the_plan_and_the_role(standin: StandIn) -> None:
    key_path = PATHS[1]
    for plan, role, expected in (
        ("PRO", "owner", 200),
        ("Enterprise", "owner", 200),
        ("FREE", "owner", 403),
        ("PRO", "admin", 403),
        ("FREE", "viewer", 403),
    ):
        await standin.control({"plan": plan, "role": role})
        answer = await standin.client.request(*key_path, headers=standin.bearer("api_key"))
        assert answer.status_code == expected, (plan, role)


@pytest.mark.contract("D10.6", "D10.7")
async def test_no_path_makes_an_evaluation_token_or_shows_an_organization_token(
    standin: StandIn,
) -> None:
    header = standin.bearer("api_key")
    for path in ("/v1/account/evaluation-token", "/v1/location/evaluation-token"):
        assert (await standin.client.post(path, headers=header)).status_code == 404
    account = await standin.client.get("/v1/account", headers=header)
    assert standin.credentials["organization_auth_token"] not in account.text
    assert "PRIVATE KEY" not in account.text


@pytest.mark.contract("D5.2")
async def test_a_service_key_is_made_for_the_version_of_the_account_that_was_seen(
    standin: StandIn,
) -> None:
    path, key = "/v1/account/service-key-and-token", standin.bearer("api_key")

    async def make(version: str) -> int:
        return (await standin.client.post(path, headers=key | {"If-Match": version})).status_code

    async def version() -> str:
        return (await standin.client.get("/v1/account", headers=key)).headers["etag"]

    seen = await version()
    standin.clock.advance(1)
    assert await make("another") == 412
    assert await make(seen) == 200
    assert await version() != seen
    assert await make(seen) == 412
