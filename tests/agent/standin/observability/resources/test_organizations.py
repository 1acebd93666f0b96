"""Organizations, the current user, and the keys: clauses O1.3, O3.2, O5.5."""

from __future__ import annotations

import pytest

from tests.support.cloud.observability import (
    Caller,
    an_event,
    basic,
    error_of,
    person,
    with_password,
    with_project_key,
    with_token,
    with_user_key,
)
from tests.support.cloud.standin import StandIn

USERS = {"password": with_password, "user key": with_user_key, "token": with_token}


@pytest.mark.contract("O3.2")
@pytest.mark.parametrize("kind", ["password", "user key"])
async def test_who_am_i_stands_beside_the_api_and_knows_basic(standin: StandIn, kind: str) -> None:
    me = (await USERS[kind](standin)("GET", "/auth/me")).json()
    assert me.keys() == {"id", "email", "name", "created_date", "updated_date", "organizations"}
    assert me["email"] == standin.credentials["user_email"]
    assert {one["slug"] for one in me["organizations"]} >= {standin.organization}
    assert error_of(await USERS[kind](standin)("GET", "/api/v0/auth/me"))["http_code"] == 404


@pytest.mark.contract("O3.2", "O4.2")
async def test_who_am_i_is_not_for_an_organization_token(standin: StandIn) -> None:
    assert error_of(await with_token(standin)("GET", "/auth/me"))["http_code"] == 403
    (only,) = await with_token(standin).data("/api/v0/organizations")
    assert only["slug"] == standin.organization


@pytest.mark.contract("O2.1", "O3.3")
async def test_a_project_has_the_fields_that_released_tools_read(standin: StandIn) -> None:
    projects = f"/api/v0/organizations/{standin.organization}/projects"
    for shown in await with_token(standin).data(projects):
        assert shown.keys() == {
            "id", "name", "slug", "platform", "os", "api_key", "count_devices", "created_date",
            "max_ota_upload_size", "qcomm_enabled",
        }  # fmt: skip
        told = [shown[name] for name in ("platform", "os", "qcomm_enabled", "max_ota_upload_size")]
        assert told == ["mcu", "zephyr", False, 256 * 1024 * 1024]


@pytest.mark.contract("O1.3", "O5.5")
async def test_the_project_key_is_made_with_the_project_and_every_member_sees_it(
    standin: StandIn,
) -> None:
    admin = with_password(standin)
    made = await admin("POST", "/api/v0/organizations/acme/projects", json={"slug": "fresh"})
    key = made.json()["data"]["api_key"]
    member = person(standin, "viewer@standin.invalid")
    shown = await member.data("/api/v0/organizations/acme/projects/fresh/api_key")
    assert shown == {"api_key": key}
    caller = Caller(standin, {"Service-Project-Key": key})
    assert (await caller("POST", "/api/v0/events", json=[an_event("new")])).status_code == 202
    devices = await admin.data("/api/v0/organizations/acme/projects/fresh/devices")
    assert [device["device_serial"] for device in devices] == ["new"]
    assert await admin.data("~/devices") == []


@pytest.mark.contract("O1.3", "O4.2")
@pytest.mark.parametrize(
    ("role", "may"),
    [("admin", True), ("project_manager", True), ("member", False), ("token", True)],
)
async def test_managers_cycle_the_project_key_and_the_old_one_stops(
    standin: StandIn, role: str, may: bool
) -> None:
    before = with_project_key(standin)
    caller = (
        with_token(standin) if role == "token" else person(standin, "viewer@standin.invalid", role)
    )
    answer = await caller("POST", "~/api_key")
    if not may:
        assert error_of(answer)["http_code"] == 403
        assert (await before("POST", "/api/v0/events", json=[an_event()])).status_code == 202
        return
    wrong = error_of(await caller("POST", "/api/v0/events", json=[an_event()]))
    assert "this endpoint takes the project key, not" in str(wrong)
    key = answer.json()["data"]["api_key"]
    assert key != standin.credentials["project_key"]
    assert (await before("POST", "/api/v0/events", json=[an_event()])).status_code == 403
    after = Caller(standin, {"Service-Project-Key": key})
    assert (await after("POST", "/api/v0/events", json=[an_event()])).status_code == 202


@pytest.mark.contract("O5.5", "O4.5")
async def test_a_user_key_is_cycled_and_is_the_user_s_in_every_project(standin: StandIn) -> None:
    old = with_user_key(standin)
    shown = (await old("GET", "/auth/api_key")).json()["data"]["api_key"]
    assert shown == standin.credentials["user_api_key"]
    made = (await with_password(standin)("POST", "/auth/api_key")).json()["data"]["api_key"]
    assert error_of(await old("GET", "~/devices"))["http_code"] == 401
    email = standin.credentials["user_email"]
    new = Caller(standin, basic(email, made))
    assert (await new("GET", "~/devices")).status_code == 200
    other = await new("GET", "/api/v0/organizations/umbrella/projects/kits/devices")
    assert other.status_code == 200
    assert (await new("DELETE", "/auth/api_key")).status_code == 204
    assert (await new("GET", "~/devices")).status_code == 401
    assert (await Caller(standin, basic(email, ""))("GET", "~/devices")).status_code == 401
