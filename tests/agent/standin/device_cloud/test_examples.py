"""The examples of the device cloud's document are answered as they stand (clauses D1.2, D8.1)."""

from __future__ import annotations

import pytest
from standin import StandIn


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


@pytest.mark.contract("D5.3")
async def test_a_bulk_request_carries_its_version_from_first_to_last(standin: StandIn) -> None:
    standin.clock.freeze()
    key = standin.bearer("api_key")
    sent = await standin.client.post(
        "/v1/devices/public-keys",
        headers=key | {"Content-Type": "text/csv"},
        content='kit-1,"no key"\n',
    )
    path = f"/v1/bulk-ops-requests/{sent.json()['bulkOpsRequestId']}"
    pending = await standin.client.get(path, headers=key)
    assert pending.headers["etag"] == pending.json()["$meta"]["version"]
    standin.clock.advance(60)
    ended = await standin.client.get(path, headers=key)
    (listed,) = (await standin.client.get("/v1/bulk-ops-requests", headers=key)).json()["items"]
    assert ended.json()["status"] == "FAILED"
    assert ended.json() == listed
    assert ended.headers["etag"] == listed["$meta"]["version"] != pending.headers["etag"]


async def test_the_tool_that_writes_each_value_as_text_gets_texts_alone(standin: StandIn) -> None:
    standin.cloud.settings.bulk_s = 0
    key = standin.bearer("api_key") | {"User-Agent": "nrfcloud-utils/3.3.1 (Linux; Python 3.11)"}
    sent = await standin.client.post(
        "/v1/devices", headers=key | {"Content-Type": "text/csv"}, content="kit-1,,,APP,none\n"
    )
    path = f"/v1/bulk-ops-requests/{sent.json()['bulkOpsRequestId']}"
    ended = await standin.client.get(path, headers=key)
    assert all(isinstance(value, str) for value in ended.json().values())
    assert ended.headers["etag"]
