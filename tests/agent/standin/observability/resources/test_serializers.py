"""Each resource is shown in the form of its schema."""

from __future__ import annotations

import re

import pytest

from agent.standin.core.schema import check
from agent.standin.observability.resources.resource_table import RESOURCES, ResourceKind
from tests.support.cloud.observability import (
    a_trace,
    an_event,
    deploy,
    make_release,
    push_events,
    upload,
    with_project_key,
    with_token,
)
from tests.support.cloud.standin import StandIn
from tests.support.dumps.sdk_bytes import coredump

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[+-]\d\d:\d\d")


@pytest.mark.contract("O2.3")
async def test_timestamps_have_a_fraction_and_a_numeric_offset(standin: StandIn) -> None:
    await push_events(standin, a_trace(captured_date="2026-11-01T00:00:00Z"))
    standin.clock.set(1_793_500_000)
    await push_events(standin, a_trace(captured_date="2026-11-01T00:00:00Z"))
    caller = with_token(standin)
    (event, *_) = await caller.data("~/events")
    (issue,) = await caller.data("~/issues")
    (device,) = await caller.data("~/devices")
    stamps = [event[f"{name}_date"] for name in ("created", "captured", "received")]
    for stamp in [*stamps, issue["first_seen"], device["last_seen"], device["created_date"]]:
        assert TIMESTAMP.fullmatch(stamp), stamp


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.name)
async def test_a_listed_resource_has_the_form_of_its_schema(
    standin: StandIn, resource: ResourceKind
) -> None:
    await push_events(standin, an_event("kit-1"), a_trace("kit-1"))
    await make_release(standin, "1.0.0")
    await deploy(standin, "1.0.0")
    device = with_project_key(standin)
    await upload(device, coredump("kit-1"), "COREDUMP", "/api/v0/upload/coredump", {})
    await upload(device, b"report", "ANDROID_BUG_REPORT", "/api/v0/upload/bugreport", {})
    items = await with_token(standin).data(f"~/{resource.name}")
    assert items
    for item in items:
        assert not check(item, resource.schema)


@pytest.mark.contract("O1.2", "O2.1", "O2.2")
async def test_a_cohort_shows_its_own_last_deployment_and_how_many_devices_it_has(
    standin: StandIn,
) -> None:
    caller = with_token(standin)
    assert [one["slug"] for one in await caller.data("~/cohorts")] == ["default"]
    for slug in ("beta", "empty"):
        assert (await caller("POST", "~/cohorts", json={"slug": slug})).status_code == 200
    await push_events(standin, an_event("kit-1"), an_event("kit-2"))
    assert (await caller("PUT", "~/cohorts/beta/devices/kit-1")).status_code == 200
    for version, cohort in (("1.0.0", "default"), ("2.0.0", "default"), ("3.0.0", "beta")):
        await make_release(standin, version)
        await deploy(standin, version, cohort=cohort)
        standin.clock.advance(60)
    shown = {
        one["slug"]: (one["last_deployment"], one["count_devices"])
        for one in await caller.data("~/cohorts")
    }
    assert {slug: devices for slug, (_, devices) in shown.items()} == {
        "default": 1, "beta": 1, "empty": 0
    }  # fmt: skip
    assert shown["empty"][0] is None
    for slug, version in (("default", "2.0.0"), ("beta", "3.0.0")):
        assert shown[slug][0]["release"]["version"] == version
