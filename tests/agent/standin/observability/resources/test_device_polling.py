"""A device polls for its latest release and its configuration: clause O5.4."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.cloud.observability import (
    IDENTITY,
    Caller,
    deploy,
    error_of,
    make_release,
    with_project_key,
    with_token,
)
from tests.support.cloud.standin import StandIn

LATEST = {"device_serial": "kit-1", "hardware_version": "nrf9161dk", "software_type": "modem-app"}


@pytest.mark.contract("O5.4")
async def test_the_latest_release_is_what_is_deployed_to_the_cohort(standin: StandIn) -> None:
    caller = with_project_key(standin)
    await make_release(standin, "1.0.0", b"old")
    await make_release(standin, "1.10.0", b"new", notes="better", extra_info={"k": "v"})
    await make_release(standin, "2.0.0", b"not deployed")
    nothing = await caller("GET", "/api/v0/releases/latest", params=LATEST)
    assert nothing.status_code == 204
    await deploy(standin, "1.0.0")
    await deploy(standin, "1.10.0")
    release = (await caller("GET", "/api/v0/releases/latest", params=LATEST)).json()
    assert (release["version"], release["notes"], release["extra_info"]) == (
        "1.10.0", "better", {"k": "v"},
    )  # fmt: skip
    (artifact,) = release["artifacts"]
    assert artifact["md5"] == hashlib.md5(b"new").hexdigest()
    assert (await standin.client.get(artifact["url"])).content == b"new"
    for current, status in (("1.9.0", 200), ("1.10.0", 204), ("2.0.0", 204), ("", 200)):
        query = LATEST | {"current_version": current}
        answer = await caller("GET", "/api/v0/releases/latest", params=query)
        assert answer.status_code == status, current
        assert status == 200 or answer.headers["memfault-reason"] == "latest"


@pytest.mark.contract("O5.4")
async def test_the_url_alone_is_told_to_small_devices(standin: StandIn) -> None:
    await make_release(standin, "1.0.0", b"image")
    await deploy(standin, "1.0.0")
    caller = with_project_key(standin)
    answer = await caller("GET", "/api/v0/releases/latest/url", params=LATEST)
    assert answer.headers["content-type"].startswith("text/plain")
    assert (await standin.client.get(answer.text)).content == b"image"


@pytest.mark.contract("O5.4")
async def test_the_latest_release_asks_for_what_it_needs(standin: StandIn) -> None:
    await make_release(standin, "1.0.0")
    await deploy(standin, "1.0.0")
    caller = with_project_key(standin)
    for query in (
        {}, {**LATEST, "device_serial": ""}, {**LATEST, "hardware_version": "unheard-of"},
        {**LATEST, "software_type": "unheard-of"},
    ):  # fmt: skip
        answer = await caller("GET", "/api/v0/releases/latest", params=query)
        assert error_of(answer)["http_code"] == 400, query
    for other in (Caller(standin, {}), with_token(standin)):
        answer = await other("GET", "/api/v0/releases/latest", params=LATEST)
        assert error_of(answer)["http_code"] == 403


@pytest.mark.contract("O5.4")
async def test_a_rollout_reaches_the_share_of_devices_that_it_says(standin: StandIn) -> None:
    await make_release(standin, "1.0.0")
    deployment = await deploy(standin, "1.0.0", type="staged_rollout", rollout_percent=30)
    assert deployment["status"] == "in_progress"
    caller, reached = with_project_key(standin), 0
    for number in range(200):
        query = LATEST | {"device_serial": f"kit-{number}"}
        answer = await caller("GET", "/api/v0/releases/latest", params=query)
        reached += answer.status_code == 200
    assert 30 < reached < 90
    assert (
        await with_token(standin)("DELETE", f"~/deployments/{deployment['id']}")
    ).status_code == 204
    answer = await caller("GET", "/api/v0/releases/latest", params=LATEST)
    assert answer.status_code == 204


async def test_the_configuration_is_confirmed_by_no_revision_at_first(standin: StandIn) -> None:
    answer = await with_project_key(standin)(
        "POST", "/api/v0/device-config", json={"device": IDENTITY}
    )
    data = answer.json()["data"]
    assert (data["revision"], data["completed"]) == (1, None)
    assert data["config"]["memfault"]["sampling"]["logging.resolution"] == "normal"


async def test_a_release_that_must_not_be_skipped_comes_first(standin: StandIn) -> None:
    for version, more in (("1.1.0", {"must_pass_through": True}), ("1.2.0", {})):
        await make_release(standin, version, **more)
        await deploy(standin, version)
    caller = with_project_key(standin)
    for current, newest in (("1.0.0", "1.1.0"), ("1.1.0", "1.2.0"), ("", "1.2.0")):
        query = LATEST | ({"current_version": current} if current else {})
        release = (await caller("GET", "/api/v0/releases/latest", params=query)).json()
        assert release["version"] == newest


@pytest.mark.contract("O5.4")
async def test_a_release_of_its_own_is_handed_out_to_one_device_until_it_is_taken_back(
    standin: StandIn,
) -> None:
    device, user = with_project_key(standin), with_token(standin)
    await make_release(standin, "1.0.0")
    await make_release(standin, "2.0.0")
    await deploy(standin, "1.0.0")
    other = LATEST | {"device_serial": "kit-2"}
    body = {"device_serial": "kit-1", "hardware_version": "nrf9161dk", "release": "2.0.0"}
    assert (await user("POST", "~/devices", json=body)).status_code == 201

    async def offered(query: dict[str, str]) -> str:
        answer = await device("GET", "/api/v0/releases/latest", params=query)
        return answer.json()["version"] if answer.status_code == 200 else ""

    assert (await offered(LATEST), await offered(other)) == ("2.0.0", "1.0.0")
    assert await offered(LATEST | {"current_version": "2.0.0"}) == ""
    unknown = await user("PATCH", "~/devices/kit-1", json={"release": "3.0.0"})
    assert unknown.status_code == 409
    assert (await user("PATCH", "~/devices/kit-1", json={"release": None})).status_code == 200
    assert await offered(LATEST) == "1.0.0"


async def test_no_rate_limit_holds_for_a_device_in_developer_mode(standin: StandIn) -> None:
    device, user = with_project_key(standin), with_token(standin)
    await make_release(standin, "1.0.0")
    await standin.control({"faults": ["rate-limit=1"]})

    async def statuses() -> list[int]:
        query = ("GET", "/api/v0/releases/latest")
        return [(await device(*query, params=LATEST)).status_code for _ in range(2)]

    assert await statuses() == [204, 429]
    for mode, expected in ((True, [204, 204]), (False, [429, 429])):
        change = {"server_side_developer_mode": mode}
        assert (await user("PATCH", "~/devices/kit-1", json=change)).status_code == 200
        assert await statuses() == expected
