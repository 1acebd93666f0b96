"""Changes of a resource reach the resources that refer to it."""

from __future__ import annotations

import pytest

from tests.support.cloud.observability import (
    a_trace,
    deploy,
    error_of,
    make_release,
    push_events,
    with_token,
)
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("O3.1")
async def test_a_cohort_that_is_removed_leaves_its_devices_in_the_default_one(
    standin: StandIn,
) -> None:
    caller = with_token(standin)
    assert (await caller("POST", "~/cohorts", json={"slug": "beta"})).status_code == 200
    device = {"device_serial": "kit-1", "hardware_version": "r1", "cohort": "beta"}
    assert (await caller("POST", "~/devices", json=device)).status_code == 201
    assert (await caller("DELETE", "~/cohorts/beta")).status_code == 204
    assert (await caller.data("~/devices/kit-1"))["cohort"]["slug"] == "default"
    stays = await caller("DELETE", "~/cohorts/default")
    assert error_of(stays)["http_code"] == 409


@pytest.mark.contract("O3.1")
async def test_a_release_that_is_deployed_is_not_removed(standin: StandIn) -> None:
    caller = with_token(standin)
    await make_release(standin, "1.0.0")
    deployment = await deploy(standin, "1.0.0")
    assert error_of(await caller("DELETE", "~/releases/1.0.0"))["http_code"] == 409
    assert (await caller("DELETE", f"~/deployments/{deployment['id']}")).status_code == 204
    assert (await caller.data(f"~/deployments/{deployment['id']}"))["status"] == "aborted"
    assert (await caller("DELETE", "~/releases/1.0.0")).status_code == 204


@pytest.mark.contract("O3.1")
async def test_of_many_releases_none_is_removed_if_one_is_deployed(standin: StandIn) -> None:
    caller = with_token(standin)
    versions = ["1.0.0", "2.0.0"]
    for version in versions:
        await make_release(standin, version)
    await deploy(standin, "2.0.0")
    refused = await caller("DELETE", "~/releases", json={"ids": versions})
    assert error_of(refused)["http_code"] == 409
    left = await caller.data("~/releases", sort="version")
    assert [release["version"] for release in left] == versions


async def test_a_second_deployment_of_a_release_replaces_the_first(standin: StandIn) -> None:
    await make_release(standin, "1.0.0")
    first = await deploy(standin, "1.0.0", type="staged_rollout", rollout_percent=10)
    second = await deploy(standin, "1.0.0", type="staged_rollout", rollout_percent=20)
    caller = with_token(standin)
    found = await caller.data("~/deployments", sort="id")
    assert [(one["id"], one["status"]) for one in found] == [
        (first["id"], "aborted"),
        (second["id"], "in_progress"),
    ]
    path = f"~/deployments/{second['id']}"
    whole = await caller("PATCH", path, json={"rollout_percent": 100})
    assert whole.json()["data"]["status"] == "done"
    late = await caller("PATCH", f"~/deployments/{first['id']}", json={"rollout_percent": 50})
    assert error_of(late)["http_code"] == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"release": "9.9.9", "cohort": "default"}, "release"),
        ({"release": ["1.0.0", "9.9.9"], "cohort": "default"}, "release"),
        ({"release": "1.0.0", "cohort": "nobody"}, "cohort"),
    ],
)
async def test_a_deployment_of_what_does_not_exist_names_the_field(
    standin: StandIn, body: dict[str, object], field: str
) -> None:
    await make_release(standin, "1.0.0")
    error = error_of(await with_token(standin)("POST", "~/deployments", json=body))
    assert (error["http_code"], set(error["message"])) == (409, {field})


async def test_an_issue_is_closed_and_renamed(standin: StandIn) -> None:
    await push_events(standin, a_trace())
    caller = with_token(standin)
    (issue,) = await caller.data("~/issues")
    change = {"status": "closed", "title": "known"}
    changed = (await caller("PATCH", f"~/issues/{issue['id']}", json=change)).json()["data"]
    assert changed == issue | change
