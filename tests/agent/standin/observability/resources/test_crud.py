"""Each resource has the methods of the table, and no others."""

from __future__ import annotations

import pytest

from tests.support.cloud.observability import (
    a_trace,
    an_event,
    error_of,
    push_events,
    with_password,
    with_token,
)
from tests.support.cloud.standin import StandIn

LISTS = (
    "releases", "cohorts", "devices", "deployments", "events", "traces", "issues", "installs",
)  # fmt: skip


@pytest.mark.contract("O1.2")
async def test_every_resource_has_its_route(standin: StandIn) -> None:
    await push_events(standin, a_trace("kit-1"))
    caller = with_token(standin)
    keys = {"releases": "version", "cohorts": "slug", "devices": "device_serial"}
    body = {"release": "2.4.1", "cohort": "default"}
    assert (await caller("POST", "~/deployments", json=body)).status_code == 201
    for name in LISTS:
        (item, *_) = await caller.data(f"~/{name}")
        one = await caller.data(f"~/{name}/{item[keys.get(name, 'id')]}")
        assert one == item
    assert (await caller.data("~"))["slug"] == standin.project
    assert (await caller.data(f"/api/v0/organizations/{standin.organization}"))["slug"] == "acme"
    for missing in ("~/hardware-versions", "~/hardware_versions"):
        assert error_of(await caller("GET", missing))["http_code"] == 404


@pytest.mark.contract("O3.1")
async def test_the_methods_do_what_the_table_of_methods_says(standin: StandIn) -> None:
    caller = with_token(standin)
    body = {"device_serial": "kit-1", "hardware_version": "r1", "nickname": "one"}
    assert (await caller("POST", "~/devices", json=body)).status_code == 201
    assert error_of(await caller("POST", "~/devices", json=body))["http_code"] == 409
    changed = (await caller("PATCH", "~/devices/kit-1", json={"description": "by the door"})).json()
    assert changed["data"]["nickname"] == "one"
    assert changed["data"]["description"] == "by the door"
    assert (await caller("POST", "~/cohorts", json={"slug": "beta"})).status_code == 200
    for _ in range(2):  # creates the relation, then changes nothing
        assert (await caller("PUT", "~/cohorts/beta/devices/kit-1")).status_code == 200
    assert (await caller.data("~/devices/kit-1"))["cohort"]["slug"] == "beta"
    assert (await caller("DELETE", "~/devices/kit-1")).status_code == 204
    assert error_of(await caller("GET", "~/devices/kit-1"))["http_code"] == 404


@pytest.mark.contract("O3.1")
async def test_many_are_deleted_by_ids_in_the_body_all_or_none(standin: StandIn) -> None:
    await push_events(standin, *(an_event(f"kit-{number}") for number in range(4)))
    caller = with_token(standin)
    ids = [device["id"] for device in await caller.data("~/devices", sort="device_serial")]
    assert error_of(await caller("DELETE", "~/devices", json={"ids": [ids[0], 999]}))
    assert (await caller("DELETE", "~/devices", json={"ids": ids[:2]})).status_code == 204
    assert (await caller("DELETE", "~/devices", json=[ids[2]])).status_code == 204
    (left,) = await caller.data("~/devices")
    assert left["device_serial"] == "kit-3"


@pytest.mark.contract("O3.1")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("POST", "~/events", {"GET", "HEAD"}), ("DELETE", "~/events/1", {"GET", "HEAD"}),
     ("PATCH", "~/installs/1", {"GET", "HEAD"}), ("PUT", "~/devices/kit-1", None),
     ("POST", "~/issues", {"GET", "HEAD"}), ("GET", "/api/v0/events", {"POST"})],
)  # fmt: skip
async def test_a_route_that_a_resource_lacks_is_refused_with_what_there_is(
    standin: StandIn, method: str, path: str, allowed: set[str] | None
) -> None:
    answer = await with_password(standin)(method, path, json={})
    assert error_of(answer)["http_code"] == 405
    offered = set(answer.headers["Allow"].split(", "))
    assert offered == allowed if allowed else method not in offered
