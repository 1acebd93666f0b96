"""The vendor's client in JavaScript, released and unmodified: it checks each answer by a schema
that was made from the real service's, and refuses what does not fit."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.config.write import set_value
from tests.support.cloud.standin import StandIn
from tests.support.fota.fota_calls import DEVICE, bundle, call, report, upload
from tests.support.keys.key_files import pem
from tests.support.location.located_kit import LAT, LON, LocatedKit, use_profile_with_companion
from tests.support.location.location_scans import LEGACY, PLACES, cells_at, scan_at
from tests.support.location.moving_kit import moving_kit

_TESTS = Path(__file__).read_text()
NPM = Path(__file__).resolve().parents[2] / ".peers" / "npm"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not (NPM / "installed.sha256").exists(), reason="no npm in .peers: ./scripts/peers makes it"
    ),
]
_PROGRAM = """
import * as api from '@hello.nrfcloud.com/nrfcloud-api-helpers/api'
const [endpoint, apiKey] = process.argv.slice(1)
const at = { endpoint: new URL(endpoint), apiKey }
const answer = await (%s)
if (answer?.error !== undefined) throw answer.error
console.log(JSON.stringify(answer ?? null))
"""


async def client(standin: StandIn, expression: str, credential: str = "api_key") -> Any:
    """Return the value of an expression: `api` is the client, `at` the service and a credential."""
    process = await asyncio.create_subprocess_exec(
        *("node", "--input-type=module", "--eval", _PROGRAM % expression, "--"),
        *(standin.urls["device_cloud"], standin.credentials[credential]),
        cwd=NPM,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


async def test_every_function_that_calls_the_service_is_tried_here(standin: StandIn) -> None:
    names = await client(
        standin, "Object.keys(api).filter((name) => /^(?!class).*fetch/is.test(`${api[name]}`))"
    )
    calls = set(names) - {"FetchError", "toFetchError", "validatedFetch"}
    assert {"getFOTAJob", "deleteAccountDevice", "devices"} <= calls
    assert {name for name in calls if f"api.{name}(" not in _TESTS} == set()


@pytest.mark.contract("D9.4")
async def test_the_account_its_cost_and_a_service_token(standin: StandIn) -> None:
    account = (await client(standin, "api.getAccountInfo(at)"))["result"]
    assert account["team"]["tenantId"] == standin.team_id
    cost = await client(standin, "api.getCurrentMonthlyCosts(at)()")
    lines = account["plan"]["currentMonthCosts"]
    assert cost == {"currentMonthTotalCost": sum(line["total"] for line in lines)}
    assert cost["currentMonthTotalCost"] > 0
    assert (await client(standin, "api.serviceToken(at)()"))["token"].count(".") == 2


async def test_the_credentials_of_the_account_s_own_device(standin: StandIn) -> None:
    made = await client(standin, "api.createAccountDevice(at)")
    assert set(made) == {"clientCert", "privateKey"}
    assert made["privateKey"].startswith("-----BEGIN PRIVATE KEY-----")
    await client(standin, "api.deleteAccountDevice(at)")


async def test_more_bundles_than_a_page_holds(standin: StandIn) -> None:
    for number in range(101):
        name = f"image-{number}.bin"
        await upload(standin, bundle(version=f"1.0.{number}", files={name: b"image"}))
    bundles = (await client(standin, "api.getFOTABundles(at)()"))["bundles"]
    assert [one["filenames"] for one in bundles] == [[f"image-{n}.bin"] for n in range(101)]


@pytest.mark.contract("D9.2")
@pytest.mark.parametrize("details", ["", "it does not start"])
async def test_a_job_from_its_making_to_its_end(standin: StandIn, details: str) -> None:
    bundle_id = await upload(standin, bundle())
    wanted = json.dumps({"deviceId": DEVICE, "bundleId": bundle_id})
    job_id = (await client(standin, f"api.createFOTAJob(at)({wanted})"))["result"]["jobId"]
    show = f"api.getFOTAJob(at)({json.dumps({'jobId': job_id})})"
    job = (await client(standin, show))["result"]
    assert job["status"] == "IN_PROGRESS"
    (path,) = job["firmware"]["uris"]
    image = await standin.client.get(f"{job['firmware']['host']}/{path}")
    assert len(image.content) == job["firmware"]["fileSize"]
    assert await report(standin, job_id, "FAILED", details=details) == 202
    assert (await client(standin, show))["result"]["status"] == "COMPLETED"


async def test_a_job_is_cancelled(standin: StandIn) -> None:
    wanted = json.dumps({"deviceId": DEVICE, "bundleId": await upload(standin, bundle())})
    job_id = (await client(standin, f"api.createFOTAJob(at)({wanted})"))["result"]["jobId"]
    done = await client(standin, f"api.cancelFOTAJob(at)({json.dumps(job_id)})")
    assert done == {"success": True}
    job = await client(standin, f"api.getFOTAJob(at)({json.dumps({'jobId': job_id})})")
    assert job["result"]["status"] == "CANCELLED"


@pytest.mark.contract("D8.2", "D10.6")
async def test_the_history_of_positions_however_they_were_found(standin: StandIn) -> None:
    place, key = PLACES[0], standin.bearer("api_key")
    scan, cells = scan_at(place), cells_at(place)
    one_cell = {"lte": [{k: v for k, v in cells["lte"][0].items() if k != "nmr"}]}
    anchor = {"macAddress": scan["accessPoints"][0]["macAddress"], "lat": 1, "lon": 2, "name": ""}
    asked = [
        ("wifi", scan), ("cell", cells), ("ground-fix", one_cell), ("anchor", anchor),
        ("wifi", scan), ("gnss", {"lat": 1e-7, "lon": -122.688408, "acc": 1e-7, "alt": 12.5}),
    ]  # fmt: skip
    for credential in ("service_token", "evaluation_token"):
        header = standin.bearer(credential) | {"X-Custom-Device-Id": DEVICE}
        for suffix, body in asked:
            if suffix == "anchor":
                await standin.client.post("/v1/location/anchors", headers=key, json=body)
                continue
            url = LEGACY.format(suffix)
            sent = await standin.client.post(url, headers=header, json=body)
            assert sent.status_code in {200, 202}, sent.text
    wanted = json.dumps({"deviceId": DEVICE})
    found = (await client(standin, f"api.getLocationHistory(at)({wanted})"))["result"]
    kinds = [one["serviceType"] for one in reversed(found["items"])]
    assert kinds == [
        *("WIFI", "MCELL", "SCELL", "ANCHOR", "GNSS"),
        *("ANCHOR", "MCELL_EVAL", "SCELL_EVAL", "ANCHOR", "GNSS"),
    ]
    newest = found["items"][0]
    assert (newest["lat"], newest["lon"]) == ("0.0000001", "-122.688408")
    assert (newest["uncertainty"], newest["meta"]) == ("0.0000001", {"alt": 12.5})
    assert len({one["id"] for one in found["items"]}) == len(found["items"])
    assert found["items"][1]["anchors"] == [{"macAddress": anchor["macAddress"].lower()}]


@pytest.mark.contract("C5", "D8.1")
async def test_what_a_kit_scans_is_a_position_in_its_history(
    standin: StandIn, tmp_path: Path
) -> None:
    async with moving_kit(tmp_path) as kit:
        use_profile_with_companion(standin, tmp_path)
        set_value("kit.device_id", DEVICE, profile="sim")
        kit.go_to(LAT, LON)
        located = LocatedKit(kit, standin)
        assert (await located.run("modem", "at", "AT+CFUN=1")).code == 0
        for source in ("wifi", "cell"):
            done = await located.run("locate", "--with", source)
            assert done.code == 0, done.stderr
    wanted = json.dumps({"deviceId": DEVICE})
    found = (await client(standin, f"api.getLocationHistory(at)({wanted})"))["result"]["items"]
    assert [one["serviceType"] for one in found] == ["MCELL", "WIFI"]


@pytest.mark.contract("D8.3")
async def test_a_position_by_one_cell_with_the_service_token(standin: StandIn) -> None:
    cell = {k: v for k, v in cells_at(PLACES[0])["lte"][0].items() if k != "nmr"}
    found = await client(standin, f"api.groundFix(at)({json.dumps(cell)})", "service_token")
    assert found["result"]["fulfilledWith"] == "SCELL"


@pytest.mark.contract("D4.1", "D5.1", "D9.3")
async def test_devices_are_made_listed_read_changed_and_removed(standin: StandIn) -> None:
    standin.cloud.settings.bulk_s = 0
    device = "oob-352656109000777"
    row = {"deviceId": device, "certPem": pem(ec.generate_private_key(ec.SECP256R1()))}
    made = await client(standin, f"api.devices(at).register([{json.dumps(row)}])")
    request = json.dumps(made["bulkOpsRequestId"])
    bulk = (await client(standin, f"api.bulkOpsRequests(at)({request})"))["result"]
    assert bulk["status"] == "SUCCEEDED", bulk
    listed = (await client(standin, "api.devices(at).list()"))["result"]["items"]
    assert [one["id"] for one in listed] == [device]
    one = json.dumps(device)
    change = json.dumps({"desired": {"config": {"active": True}}})
    assert (await client(standin, f"api.devices(at).updateState({one}, {change})"))["success"]
    read = (await client(standin, f"api.devices(at).get({one})"))["result"]
    (shadow,) = (await client(standin, f"api.getDeviceShadow(at)([{one}])"))["shadows"]
    assert read["state"]["desired"] == shadow["state"]["desired"] == {"config": {"active": True}}
    assert (await client(standin, f"api.devices(at).remove({one})"))["success"]
    assert (await call(standin, "GET", f"/devices/{device}")).status_code == 404
