"""The rest of what nrfcloud-utils does with the cloud, released and unmodified."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.provisioning.ca.certificates import pem_of
from agent.provisioning.ca.device_ca import DeviceCa
from agent.provisioning.exports import for_bulk_onboarding, for_nordic_tools
from agent.provisioning.ledger import BoardRecord
from at.tokens.key_formats import key_pem
from tests.support.cloud.standin import StandIn
from tests.support.commands.nrfcloud_tools import INSTALLED, internet, public_pem, run
from tests.support.keys.operator_ca import make_ca

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not INSTALLED, reason="no .peers here: ./scripts/peers makes it"),
]
DEVICE = "nrf-352656109000101"


async def add_bundle(standin: StandIn, kind: str) -> str:
    """Upload a bundle of that type of file; return its id."""
    manifest = {"name": kind, "fwversion": "2.0.1", "format-version": 1,
                "files": [{"file": "image.bin", "type": kind, "size": 4}]}  # fmt: skip
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr("manifest.json", json.dumps(manifest))
        bundle.writestr("image.bin", b"test")
    key = standin.bearer("api_key")
    sent = await standin.client.post(
        "/v1/firmwares",
        headers=key | {"Content-Type": "application/zip"},
        content=archive.getvalue(),
    )
    assert sent.status_code == 202, sent.text
    items = (await standin.client.get("/v1/firmwares", headers=key)).json()["items"]
    return next(str(item["bundleId"]) for item in items if item["name"] == kind)


@pytest.mark.contract("D9.1", "D9.3")
async def test_it_names_what_it_onboards_and_notes_the_modem_firmware(tmp_path: Path) -> None:
    async with internet(tmp_path) as (standin, environment):
        (tmp_path / "one.csv").write_text(f'{DEVICE},,bench,APP|MODEM,"{public_pem()}"\n')
        (tmp_path / "info.csv").write_text(f"{DEVICE},mfw_nrf91x1_2.0.2,352656109000101\n")
        onboard = (
            *("nrf_cloud_onboard", "--api-key", standin.credentials["api_key"], "--plain"),
            *("--csv", "one.csv", "--chk", "--devinfo", "info.csv", "--set-mfwv", "--name-imei"),
            *("--name-prefix", "kit-"),
        )
        code, output = await run(environment, tmp_path, *onboard)
        assert code == 0, output
        assert "Failed" not in output
        path = f"/v1/devices/{DEVICE}"
        device = (await standin.client.get(path, headers=standin.bearer("api_key"))).json()
        assert device["name"] == "kit-352656109000101"
        told = device["state"]["reported"]["device"]["deviceInfo"]
        assert told == {"modemFirmware": "mfw_nrf91x1_2.0.2"}
        _, output = await run(environment, tmp_path, *onboard)
        assert "already onboarded" in output


@pytest.mark.contract("C10", "D9.3", "D10.8")
async def test_it_takes_the_exports_of_our_ledger_as_they_are(tmp_path: Path) -> None:
    """`provision export --as bulk` is its onboarding list, `--as nordic` its device list.

    Every other board of the tray of 64 has a certificate of the operator's CA.
    """
    (tmp_path / "operator").mkdir()
    authority, now = DeviceCa.load(*make_ca(tmp_path / "operator"), lambda: ""), datetime.now(UTC)
    boards = []
    for number in range(64):
        key = ec.generate_private_key(ec.SECP256R1()).public_key()
        device = f"nrf-3526561090002{number:02}"
        leaf = pem_of(authority.sign(key, device, now, timedelta(days=3650)))
        boards.append(
            BoardRecord(
                f"u-{number}", f"3526561090002{number:02}", device, firmware="mfw_nrf91x1_2.0.4",
                public_key=key_pem(key), certificate=leaf if number % 2 else "",
            )
        )  # fmt: skip
    bulk = "".join(for_bulk_onboarding(boards, sub_type="kit", tags=("bench", "new")))
    (tmp_path / "onboard.csv").write_text(bulk)
    (tmp_path / "devices.csv").write_text("".join(for_nordic_tools(boards)))
    async with internet(tmp_path) as (standin, environment):
        code, output = await run(
            environment, tmp_path,
            *("nrf_cloud_onboard", "--api-key", standin.credentials["api_key"], "--plain"),
            *("--csv", "onboard.csv", "--devinfo", "devices.csv", "--res", "r.csv"),
            *("--set-mfwv", "--name-imei"),
        )  # fmt: skip
        assert code == 0, output
        result = (tmp_path / "r.csv").read_text()
        assert [f"{board.device_id},OK" in result for board in boards] == [True] * 64, output
        device = (
            await standin.client.get(
                f"/v1/devices/{boards[3].device_id}", headers=standin.bearer("api_key")
            )
        ).json()
        assert device["name"] == boards[3].imei
        assert device["tags"] == ["bench", "new"]


@pytest.mark.parametrize("deferred", [False, True])
async def test_it_makes_a_job_for_a_tag_at_once_or_for_later(
    tmp_path: Path, deferred: bool
) -> None:
    async with internet(tmp_path) as (standin, environment):
        bundle = await add_bundle(standin, "modem")
        key = standin.bearer("api_key")
        code, output = await run(
            environment,
            tmp_path,
            *("nrf_cloud_device_mgmt", "--api-key", standin.credentials["api_key"], "--ad"),
            *("--type", "MODEM", "--tag", "demo", "--bundle-id", bundle),
            *("--name", "peer", "--desc", "made by a released tool"),
            *(("--defer-apply",) if deferred else ()),
        )
        assert code == 0, output
        assert "Created job" in output, output
        (job,) = (await standin.client.get("/v1/fota-jobs", headers=key)).json()["items"]
        assert job["status"] == ("CREATED" if deferred else "IN_PROGRESS")
        if deferred:
            path = f"/v1/fota-jobs/{job['jobId']}/apply"
            assert (await standin.client.post(path, headers=key)).status_code == 202
        current = "/v1/fota-job-executions/nrf-352656109000002/current"
        assert (await standin.client.get(current, headers=key)).status_code == 200


@pytest.mark.contract("D10.4")
@pytest.mark.parametrize("days", ["30", "0"])
async def test_its_proxy_token_opens_the_service_whose_key_signed_it(
    tmp_path: Path, days: str
) -> None:
    async with internet(tmp_path) as (standin, environment):
        key_file = standin.credentials["service_key_file"]
        code, output = await run(
            environment,
            tmp_path,
            *("create_proxy_jwt", "--key", key_file, "--team-id", standin.team_id),
            *("--days-valid", days),
        )
        assert code == 0, output
        token = next(word for word in output.split() if word.count(".") == 2 and len(word) > 100)
        headers = {"Authorization": f"Bearer {token}"}
        points = [
            {"macAddress": "40:01:7a:00:00:e3", "signalStrength": -61},
            {"macAddress": "40:01:7a:00:01:67", "signalStrength": -70},
        ]
        scan = {"accessPoints": points}
        found = await standin.client.post("/v1/location/wifi", json=scan, headers=headers)
        assert found.status_code == 200, found.text
        current = "/v1/fota-job-executions/nrf-352656109000002/current"
        assert (await standin.client.get(current, headers=headers)).status_code == 401
