"""Location at the stand-in: both forms of the path, scans, anchors, addresses (clause D8)."""

from __future__ import annotations

import math
import re
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.standin.core.schema import check
from agent.standin.device_cloud.location.location import decimal_text
from agent.standin.device_cloud.routes import every_operation
from tests.support.cloud.standin import StandIn
from tests.support.location.location_scans import LEGACY, PLACES, cells_at, scan_at, url


@pytest.mark.contract("D8.3", "D8.5", "D8.4")
async def test_service_tokens_and_organization_tokens_work_side_by_side_until_migrated(
    standin: StandIn,
) -> None:
    scan = scan_at(PLACES[0])
    legacy = LEGACY.format("wifi")

    async def statuses() -> tuple[int, int]:
        old = await standin.client.post(legacy, headers=standin.bearer("service_token"), json=scan)
        new = await standin.client.post(
            url("wifi"), headers=standin.bearer("organization_auth_token"), json=scan
        )
        return old.status_code, new.status_code

    assert await statuses() == (200, 200)
    wrong = await standin.client.post(
        legacy, headers=standin.bearer("organization_auth_token"), json=scan
    )
    assert wrong.status_code == 401
    standin.cloud.settings.legacy_location = False
    assert await statuses() == (404, 200)


@pytest.mark.contract("D8.3")
@pytest.mark.parametrize("suffix", ["wifi", "cell", "ground-fix", "agnss", "pgps"])
async def test_every_legacy_path_is_there(standin: StandIn, suffix: str) -> None:
    place = PLACES[3]
    body = {"wifi": scan_at(place), "agnss": {}}.get(suffix, cells_at(place))
    method = "GET" if suffix == "pgps" else "POST"
    answer = await standin.client.request(
        method,
        LEGACY.format(suffix),
        headers=standin.bearer("service_token"),
        json=None if suffix == "pgps" else body,
    )
    assert answer.status_code == 200, answer.text


@given(st.floats(-1e9, 1e9))
def test_a_number_of_the_history_is_a_text_without_an_exponent(number: float) -> None:
    text = decimal_text(number)
    assert re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", text)
    # Half of the last place, and the step between two floats of that size.
    assert float(text) == pytest.approx(number, abs=5.1e-9 + math.ulp(number))


@pytest.mark.contract("D8.3")
async def test_the_history_shows_a_position_of_the_device_s_own_in_its_words(
    standin: StandIn,
) -> None:
    header = standin.bearer("service_token") | {"X-Custom-Device-Id": "kit-1"}
    for fix in ({"lat": -1e-7, "lng": 10.5, "acc": 1e9, "alt": 12.5}, {"lat": 0, "lon": -180}):
        sent = await standin.client.post(LEGACY.format("gnss"), headers=header, json=fix)
        assert (sent.status_code, sent.headers["content-length"]) == (202, "0")
    history = await standin.client.get(LEGACY.format("history"), headers=standin.bearer("api_key"))
    newest, oldest = history.json()["items"]
    assert (newest["lat"], newest["lon"], newest["uncertainty"]) == ("0", "-180", "10")
    assert (oldest["lat"], oldest["lon"], oldest["uncertainty"]) == (
        *("-0.0000001", "10.5"),
        "1000000000",
    )
    assert [one["serviceType"] for one in (newest, oldest)] == ["GNSS", "GNSS"]
    assert [one["meta"] for one in (newest, oldest)] == [{}, {"alt": 12.5}]
    assert newest["id"] != oldest["id"] == str(uuid.UUID(oldest["id"]))


async def test_the_switches_of_a_location_call(standin: StandIn) -> None:
    header = standin.bearer("organization_auth_token")
    scan = scan_at(PLACES[0])

    async def ask(suffix: str, body: dict, **query: str):
        return await standin.client.post(url(suffix), headers=header, json=body, params=query)

    plain = (await ask("wifi", scan)).json()
    sure = (await ask("wifi", scan, hiConf="true")).json()
    assert sure["uncertainty"] > plain["uncertainty"]
    silent = await ask("wifi", scan, doReply="false")
    assert (silent.status_code, silent.content) == (200, b"")
    unknown = cells_at(PLACES[0])
    unknown["lte"][0]["eci"] = 268435455
    rough = await ask("cell", unknown)
    assert rough.status_code == 200
    assert rough.json()["uncertainty"] > 3000
    assert (await ask("cell", unknown, fallback="false")).status_code == 404
    one = {"accessPoints": scan["accessPoints"][:1]}
    assert (await ask("wifi", one)).status_code == 422
    nowhere = {
        "accessPoints": [
            {"macAddress": f"00:11:22:33:44:0{n}", "signalStrength": -50} for n in range(3)
        ]
    }
    assert (await ask("wifi", nowhere)).status_code == 404
    both = {**cells_at(PLACES[0]), "wifi": scan}
    assert "alt" in (await ask("ground-fix", both, alt="true")).json()


@pytest.mark.contract("D8.1", "D8.2")
@pytest.mark.parametrize("suffix", ["wifi", "cell", "ground-fix"])
async def test_an_example_of_a_scan_has_a_position(standin: StandIn, suffix: str) -> None:
    document = (await standin.client.get("/v1/openapi.json")).json()
    path = f"/v1/organizations/{{organization}}/projects/{{project}}/location/{suffix}"
    body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    (example,) = body["schema"]["examples"]
    answer = await standin.client.post(
        path.format(organization=standin.organization, project=standin.project),
        headers=standin.bearer("organization_auth_token"),
        json=example,
    )
    assert answer.status_code == 200, answer.text
    assert {"lat", "lon", "uncertainty"} <= answer.json().keys()


async def test_one_cell_of_the_query_has_a_position(standin: StandIn) -> None:
    answer = await standin.client.get(
        "/v1/location/single-cell?mcc=1&mnc=1&eci=33703681&tac=2305&rsrp=-97",
        headers=standin.bearer("service_token"),
    )
    assert answer.json()["fulfilledWith"] == "SCELL", answer.text


ANCHORS = "/v1/location/anchors"
FAR = {"macAddress": "40:01:7A:00:01:67", "signalStrength": -80}
GROUND_FIX = "/v1/organizations/acme/projects/kits/location/ground-fix"
NEAR = {"macAddress": "40:01:7a:00:00:e3", "signalStrength": -50}
WIFI = "/v1/organizations/acme/projects/kits/location/wifi"


async def test_an_anchor_that_is_heard_is_the_answer(standin: StandIn) -> None:
    client, key = standin.client, standin.bearer("api_key")
    token = standin.bearer("organization_auth_token")
    scan = {"accessPoints": [NEAR, FAR]}
    assert "anchors" not in (await client.post(WIFI, json=scan, headers=token)).json()
    for point, lat in ((FAR, 1.5), (NEAR, 2.5)):
        wish = {"macAddress": point["macAddress"], "lat": lat, "lon": 3, "name": "the <shelf>!"}
        assert (await client.post(ANCHORS, json=wish, headers=key)).status_code == 202
    for path, body in ((WIFI, scan), (GROUND_FIX, {"wifi": scan})):
        found = (await client.post(path, json=body, headers=token)).json()
        assert (found["lat"], found["lon"], found["fulfilledWith"]) == (2.5, 3, "ANCHOR")
        assert found["anchors"] == [
            {"macAddress": "40:01:7a:00:00:e3", "name": "the shelf"},
            {"macAddress": "40:01:7a:00:01:67", "name": "the shelf"},
        ]
    unheard = {"accessPoints": [{**NEAR, "macAddress": f"40:01:7a:00:02:{n}0"} for n in (1, 2)]}
    assert "anchors" not in (await client.post(WIFI, json=unheard, headers=token)).json()


@pytest.mark.contract("D5.2", "D5.3")
async def test_an_anchor_is_fetched_changed_and_forgotten(standin: StandIn) -> None:
    client, key = standin.client, standin.bearer("api_key")
    wish = {"macAddress": FAR["macAddress"], "lat": 1, "lon": 2}
    assert (await client.post(ANCHORS, json=wish, headers=key)).status_code == 202
    assert (await client.post(ANCHORS, json=wish, headers=key)).status_code == 409
    path = f"{ANCHORS}/{FAR['macAddress'].replace(':', '-')}"
    first = await client.get(path, headers=key)
    assert first.json()["macAddress"] == "40:01:7a:00:01:67"
    assert first.headers["etag"] == first.json()["$meta"]["version"]
    match = key | {"If-Match": first.headers["etag"]}
    assert (await client.patch(path, json={"lat": 5}, headers=match)).status_code == 202
    assert (await client.patch(path, json={"lat": 6}, headers=match)).status_code == 412
    changed = (await client.get(path, headers=key)).json()
    assert (changed["lat"], changed["lon"]) == (5, 2)
    for wrong in ({"lat": 91}, {"name": "x" * 33}, {"lon": "east"}):
        assert (await client.patch(path, json=wrong, headers=key)).status_code == 422
    assert (await client.get(ANCHORS, headers=key)).json()["items"] == [changed]
    assert (await client.delete(path, headers=match)).status_code == 412
    assert (await client.delete(path, headers=key)).status_code == 202
    assert (await client.get(path, headers=key)).status_code == 404


async def test_an_address_is_known_in_the_made_up_town_alone(standin: StandIn) -> None:
    client, token = standin.client, standin.bearer("service_token")
    path = "/v1/location/geo"
    found = await client.get(path, params={"lat": 63.42, "lon": 10.38}, headers=token)
    assert set(found.json()) == {"lat", "lon", "uncertainty", "formatted", "address"}
    assert {"country", "state"} <= set(found.json()["address"])
    away = await client.get(path, params={"lat": 0, "lon": 0}, headers=token)
    assert away.status_code == 404
    for wrong in ({}, {"lat": "x", "lon": 0}, {"lat": 91, "lon": 0}):
        assert (await client.get(path, params=wrong, headers=token)).status_code == 422
    key = standin.bearer("api_key")
    assert (await client.get(path, params={"lat": 0, "lon": 0}, headers=key)).status_code == 401
    standin.cloud.settings.legacy_location = False
    assert (await client.get(path, params={"lat": 0, "lon": 0}, headers=token)).status_code == 404


CURRENT = "/v1/organizations/{organization}/projects/{project}/location/"
LEGACY_PREFIX = "/v1/location/"
DAY = 17_000
NOW = DAY * 86400 + 315_964_800
OPERATIONS = {(one.method, one.path): one for one in every_operation(NOW)}


@pytest.mark.contract("D8.3", "D8.4")
def test_an_operation_of_the_current_form_has_a_deprecated_twin_of_the_legacy_form() -> None:
    current = {key: one for key, one in OPERATIONS.items() if key[1].startswith(CURRENT)}
    assert len(current) > 6
    for (method, path), one in current.items():
        twin = OPERATIONS[method, path.replace(CURRENT, LEGACY_PREFIX)]
        assert twin.deprecated
        assert one.deprecated is path.endswith("single-cell")
        assert (twin.bodies, twin.answers) == (one.bodies, one.answers)
        assert set(twin.security).isdisjoint(one.security)
        assert twin.name == f"Legacy{one.name}"


@pytest.mark.parametrize("suffix", ["pgps", "pgnss"])
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ({"startGpsDay": DAY + 14}, True),
        ({"startGpsDay": DAY + 15}, False),
        ({"predictionIntervalMinutes": 120, "predictionCount": 168}, True),
        ({"predictionIntervalMinutes": 120, "predictionCount": 169}, False),
        ({"predictionIntervalMinutes": 480, "predictionCount": 43}, False),
        ({"predictionCount": 84}, True),
        ({"predictionCount": 85}, False),
    ],
)
def test_no_prediction_is_asked_for_beyond_fourteen_days(
    suffix: str, asked: dict[str, Any], fits: bool
) -> None:
    (predictions,) = (
        one.schema
        for one in OPERATIONS["GET", CURRENT + suffix].parameters
        if one.name == "predictions"
    )
    assert bool(check(asked, predictions)) is not fits
