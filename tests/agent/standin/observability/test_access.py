"""Who may do what: clauses O3.3 and O4, the stand-in's half."""

from __future__ import annotations

import pytest

from agent.standin.state import PROJECTS
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


@pytest.mark.contract("O4.1", "O4.2", "O1.2")
@pytest.mark.parametrize("kind", list(USERS))
async def test_three_mechanisms_open_what_users_read(standin: StandIn, kind: str) -> None:
    assert (await USERS[kind](standin)("GET", "~/devices")).status_code == 200


@pytest.mark.contract("O4.2", "O1.2")
async def test_a_token_as_the_password_of_nobody_is_read_as_base64_alone(standin: StandIn) -> None:
    token = basic("", standin.credentials["organization_auth_token"])
    assert (await Caller(standin, token)("GET", "~/devices")).status_code == 200
    spoilt = {name: f"{value}!" for name, value in token.items()}
    assert (await Caller(standin, spoilt)("GET", "~/devices")).status_code == 401


@pytest.mark.contract("O4.1", "O4.3")
@pytest.mark.parametrize(
    "headers",
    [{}, basic("nobody@standin.invalid", "x"), {"Authorization": "Bearer oat_made-up"},
     {"Authorization": "Basic !!"}, {"Authorization": "Digest x"}],
)  # fmt: skip
async def test_a_wrong_credential_is_told_as_such(
    standin: StandIn, headers: dict[str, str]
) -> None:
    answer = await Caller(standin, headers)("GET", "~/devices")
    assert error_of(answer)["http_code"] == 401
    assert answer.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.contract("O4.2", "O3.3")
async def test_an_organization_token_opens_one_organization(standin: StandIn) -> None:
    token = with_token(standin)
    assert standin.credentials["organization_auth_token"].startswith("oat_")
    slugs = [one["slug"] for one in await token.data("/api/v0/organizations/acme/projects")]
    assert standin.project in slugs
    assert len(slugs) > 1
    refused = await token("GET", "/api/v0/organizations/umbrella/projects")
    assert error_of(refused)["http_code"] == 403
    users = await with_password(standin).data("/api/v0/organizations")
    assert {one["slug"] for one in users} == {"acme", "umbrella"}
    others = await with_password(standin).data("/api/v0/organizations/umbrella/projects")
    every = {(one.organization, one.slug) for one in standin.cloud.table(PROJECTS).values()}
    for organization, listed in (("acme", slugs), ("umbrella", [one["slug"] for one in others])):
        assert sorted(listed) == sorted(slug for home, slug in every if home == organization)


@pytest.mark.contract("O4.2")
async def test_an_organization_token_is_taken_in_the_older_form_of_released_tools(
    standin: StandIn,
) -> None:
    token = standin.credentials["organization_auth_token"]
    assert (await Caller(standin, basic("", token))("GET", "~/devices")).status_code == 200
    key = standin.credentials["user_api_key"]
    assert (await Caller(standin, basic("", key))("GET", "~/devices")).status_code == 401


@pytest.mark.contract("O4.3")
@pytest.mark.parametrize("header", ["Service-Project-Key", "memfault-project-key"])
async def test_the_project_key_pushes_and_is_rejected_elsewhere(
    standin: StandIn, header: str
) -> None:
    device = with_project_key(standin, header)
    pushed = await device("POST", "/api/v0/events", "ingress", json=[an_event()])
    assert pushed.status_code == 202
    for method, path in (
        ("GET", "~/devices"), ("GET", "~"), ("GET", "~/api_key"), ("GET", "/auth/me"),
        ("GET", "/api/v0/organizations"), ("POST", "~/upload"), ("POST", "~/cohorts"),
    ):  # fmt: skip
        assert error_of(await device(method, path, json={}))["http_code"] == 403, path


@pytest.mark.contract("O4.3")
@pytest.mark.parametrize("kind", list(USERS))
async def test_a_push_takes_the_project_key_alone(standin: StandIn, kind: str) -> None:
    answer = await USERS[kind](standin)("POST", "/api/v0/events", "ingress", json=[an_event()])
    assert error_of(answer)["http_code"] == 403


@pytest.mark.contract("O4.3", "O3.4")
async def test_a_missing_or_wrong_project_key_is_403(standin: StandIn) -> None:
    for key in (None, "", "0" * 32, standin.credentials["project_key"][:-1]):
        caller = Caller(standin, {} if key is None else {"Service-Project-Key": key})
        for path in ("/api/v0/events", "/api/v0/chunks/kit-1", "/api/v0/upload"):
            assert error_of(await caller("POST", path, json=[]))["http_code"] == 403, key


async def test_a_member_reads_and_does_not_change(standin: StandIn) -> None:
    member = person(standin, "viewer@standin.invalid")
    assert (await member("GET", "~/devices")).status_code == 200
    for method, path, body in (
        ("POST", "~/cohorts", {"slug": "x"}),
        ("POST", "~/devices", {"device_serial": "x", "hardware_version": "y"}),
        ("PATCH", "~", {"name": "x"}),
    ):
        assert error_of(await member(method, path, json=body))["http_code"] == 403


@pytest.mark.contract("O4.5")
async def test_a_user_key_opens_all_organizations_but_those_with_single_sign_on(
    standin: StandIn,
) -> None:
    caller, place = with_user_key(standin), "/api/v0/organizations/umbrella/projects"
    assert (await caller("GET", place)).status_code == 200
    await standin.control({"single_sign_on": {"umbrella": True}})
    refused = error_of(await caller("GET", place))
    assert refused["http_code"] == 403
    assert "single sign-on" in refused["message"]
    assert (await with_password(standin)("GET", place)).status_code == 200
    assert (await caller("GET", "~/devices")).status_code == 200
    listed = await caller.data("/api/v0/organizations")
    assert [one["slug"] for one in listed] == ["acme"]


@pytest.mark.contract("O4.5")
async def test_a_user_key_stops_when_the_user_is_removed(standin: StandIn) -> None:
    caller = with_user_key(standin)
    assert (await caller("GET", "~/devices")).status_code == 200
    await standin.control({"members": {"acme": None}})
    refused = error_of(await caller("GET", "~/devices"))
    assert refused["http_code"] == 403
    assert "member" in refused["message"]


@pytest.mark.contract("O4.6")
async def test_the_organization_token_of_the_location_endpoints_is_this_one(
    standin: StandIn,
) -> None:
    from agent.standin.principal import CredentialKind, by_bearer

    token = standin.credentials["organization_auth_token"]
    assert by_bearer(token, standin.cloud).kind is CredentialKind.ORGANIZATION_TOKEN
    assert (await with_token(standin)("GET", "~/devices")).status_code == 200
