"""Bulk requests at the stand-in (clauses D5.3, D9.3)."""

from __future__ import annotations

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from agent.standin.device_cloud.devices.bulk import REQUESTS, BulkRequest, BulkStatus
from tests.support.cloud.device_tokens import DEVICE, upload
from tests.support.cloud.standin import StandIn
from tests.support.keys.key_files import pem


async def test_nothing_is_registered_before_the_bulk_request_is_done(standin: StandIn) -> None:
    standin.clock.freeze()
    key = ec.generate_private_key(ec.SECP256R1())
    answer = await standin.client.post(
        "/v1/devices/public-keys",
        headers=standin.bearer("api_key") | {"Content-Type": "text/plain; charset=utf-8"},
        content=f'{DEVICE},"{pem(key)}"',
    )
    operation = answer.json()["bulkOpsRequestId"]
    states = []
    for _ in range(3):
        shown = await standin.client.get(
            f"/v1/bulk-ops-requests/{operation}", headers=standin.bearer("api_key")
        )
        states.append(shown.json()["status"])
        standin.clock.advance(0.2)
    assert states == ["PENDING", "IN_PROGRESS", "SUCCEEDED"]


@pytest.mark.contract("D10.2")
async def test_an_rsa_key_is_refused_and_the_row_is_named(standin: StandIn) -> None:
    good = ec.generate_private_key(ec.SECP256R1())
    bad = rsa.generate_private_key(65537, 2048)
    other_curve = ec.generate_private_key(ec.SECP384R1())
    rows = f'a,"{pem(good)}"\nb,"{pem(bad)}"\nc,"{pem(other_curve)}"\nd,nonsense\n'
    done = await upload(standin, "public-keys", rows)
    assert done["status"] == "FAILED"
    errors = (await standin.client.get(done["errorSummaryUrl"])).json()["errors"]
    assert [text.split("]")[0] for text in errors] == ["[1", "[2", "[3"]


async def test_a_row_is_refused_for_what_the_device_could_not_be_changed_to(
    standin: StandIn,
) -> None:
    key = pem(ec.generate_private_key(ec.SECP256R1()))
    good = f'a,kit-1,left|right,APP,"{key}"\nb,,,,"{key}"\n'
    bad = f'c,kit 1,left,APP,"{key}"\nd,kit-1,left|the bench,APP,"{key}"\n'
    done = await upload(standin, "", good + bad)
    errors = (await standin.client.get(done["errorSummaryUrl"])).json()["errors"]
    assert [text.partition(": ")[0] for text in errors] == ["[2]", "[3]"]
    assert "'kit 1'" in errors[0]
    assert "the bench" in errors[1]


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
    content_type = {"Content-Type": "text/csv"}
    later = await standin.client.post(
        "/v1/devices/public-keys", headers=key | content_type, content='kit-2,"no key"\n'
    )
    items = (await standin.client.get("/v1/bulk-ops-requests", headers=key)).json()["items"]
    latest = [later.json()["bulkOpsRequestId"], listed["bulkOpsRequestId"]]
    assert [item["bulkOpsRequestId"] for item in items] == latest
    assert ended.json()["status"] == "FAILED"
    assert ended.json() == listed
    assert ended.headers["etag"] == listed["$meta"]["version"] != pending.headers["etag"]


@pytest.mark.parametrize(
    "user_agent", ["nrfcloud-utils/3.3.1 (Linux; Python 3.11)", "python-requests/2.32.3"]
)
async def test_the_tool_that_writes_each_value_as_text_gets_texts_alone(
    standin: StandIn, user_agent: str
) -> None:
    standin.cloud.settings.bulk_s = 0
    key = standin.bearer("api_key") | {"User-Agent": user_agent}
    sent = await standin.client.post(
        "/v1/devices", headers=key | {"Content-Type": "text/csv"}, content="kit-1,,,APP,none\n"
    )
    path = f"/v1/bulk-ops-requests/{sent.json()['bulkOpsRequestId']}"
    ended = await standin.client.get(path, headers=key)
    assert all(isinstance(value, str) for value in ended.json().values())
    assert ended.headers["etag"]


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ({"done": False, "errors": []}, BulkStatus.PENDING),
        ({"done": True, "errors": []}, BulkStatus.SUCCEEDED),
        ({"done": True, "errors": ["[0]: no"]}, BulkStatus.FAILED),
    ],
)
def test_a_bulk_request_of_0_1_0_is_in_the_status_that_it_showed(
    ended: dict[str, object], status: BulkStatus
) -> None:
    written = {"team": "t", "endpoint": "e", "text": "", "requested_at": 1.0, "due": 2.0} | ended
    read = msgspec.convert(written, BulkRequest)
    assert read.status is status
    assert "done" not in msgspec.to_builtins(read)


async def test_a_bulk_request_that_has_ended_is_processed_once(standin: StandIn) -> None:
    done = await upload(standin, "public-keys", 'kit-1,"no key"\n')
    [request] = standin.cloud.table(REQUESTS).values()
    request.errors.clear()
    key = standin.bearer("api_key")
    shown = await standin.client.get(
        f"/v1/bulk-ops-requests/{done['bulkOpsRequestId']}", headers=key
    )
    assert (shown.json()["status"], request.errors) == ("FAILED", [])
