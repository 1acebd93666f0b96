"""The device cloud's document is true (clauses D1.2, D1.5)."""

from __future__ import annotations

from typing import Any

import pytest

from agent.standin.device_cloud import seed
from tests.support.cloud.standin import StandIn


@pytest.mark.contract("D1.2")
async def test_the_document_is_openapi_3_and_open_to_everyone(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/openapi.json")
    document = answer.json()
    assert answer.status_code == 200
    assert document["openapi"].startswith("3.")
    schemes = document["components"]["securitySchemes"]
    for name in ("Simple Token", "JSON Web Token"):
        # A component's name holds no blank; what the service calls it stands beside it.
        assert schemes[name.replace(" ", "")]["description"].startswith(f"{name}: ")
    report = document["paths"]["/v1/fota-job-executions/{device_id}/{job_id}"]["patch"]
    assert "Credential: Simple Token or JSON Web Token." in report["description"]


@pytest.mark.contract("D1.5")
async def test_an_operation_takes_exactly_the_schemes_that_it_declares(standin: StandIn) -> None:
    document = (await standin.client.get("/v1/openapi.json")).json()
    credentials = {
        "SimpleToken": "api_key",
        "OrganizationAuthToken": "organization_auth_token",
        "EvaluationToken": "evaluation_token",
    }
    standin.cloud.settings.bulk_s = 1e9
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            taken = {name for choice in operation["security"] for name in choice}
            filled = path.replace("{organization}", "acme").replace("{project}", "kits")
            filled = filled.replace("{", "").replace("}", "")
            for scheme, name in credentials.items():
                if not taken:
                    continue
                answer = await standin.client.request(method, filled, headers=standin.bearer(name))
                refused = answer.status_code == 401 and (
                    method == "head" or answer.json()["code"] == 40100
                )
                assert refused is (scheme not in taken), (method, path, scheme, answer.text)


@pytest.mark.contract("D1.2")
@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("get /v1/devices", {"deviceIds", "deviceIdentifiers"}),
        ("get /v1/messages", {"inclusiveStart", "start", "exclusiveEnd", "end"}),
        ("post /v1/location/wifi", {"x-custom-device-id"}),
        ("post /v1/location/gnss", {"x-custom-device-id"}),
    ],
)
async def test_every_name_of_a_parameter_that_is_taken_is_documented(
    standin: StandIn, call: str, names: set[str]
) -> None:
    document = (await standin.client.get("/v1/openapi.json")).json()
    method, _, path = call.partition(" ")
    assert names <= {one["name"] for one in document["paths"][path][method]["parameters"]}


async def test_the_other_name_of_the_ids_selects_devices_as_well(standin: StandIn) -> None:
    key = standin.bearer("api_key")
    query = {"deviceIdentifiers": f"{seed.BLE},nobody"}
    found = (await standin.client.get("/v1/devices", params=query, headers=key)).json()
    assert [device["id"] for device in found["items"]] == [seed.BLE]


@pytest.mark.contract("D8.3")
async def test_a_device_id_of_a_proxy_is_held_to_its_declared_form(standin: StandIn) -> None:
    header = standin.bearer("service_token")
    for name, status in (("kit-1", 202), ("x" * 129, 422)):
        answer = await standin.client.post(
            "/v1/location/gnss",
            json={"lat": 63.4, "lon": 10.4},
            headers={**header, "X-Custom-Device-Id": name},
        )
        assert answer.status_code == status, answer.text
    history = await standin.client.get("/v1/location/history", headers=standin.bearer("api_key"))
    assert [one["deviceId"] for one in history.json()["items"]] == ["kit-1"]


async def test_a_csv_of_a_project_and_the_body_of_a_size_are_documented_as_they_are_taken(
    standin: StandIn,
) -> None:
    paths = (await standin.client.get("/v1/openapi.json")).json()["paths"]
    project = "/v1/organizations/{organization}/projects/{project}/"
    csv = paths[project + "long-range/devices/bulk"]["post"]["requestBody"]
    assert set(csv["content"]) == {"text/csv", "text/plain", "application/octet-stream"}
    sized = paths[project + "location/agnss"]["head"]["requestBody"]
    assert sized["required"] is False
    asked: tuple[dict[str, Any], ...] = ({"json": {"types": [7]}}, {"params": {"types": 7}})
    call, key = ("HEAD", "/v1/location/agnss"), standin.bearer("service_token")
    answers = [await standin.client.request(*call, headers=key, **one) for one in asked]
    assert len({answer.headers["content-length"] for answer in answers}) == 1
