"""nrfcloud-utils, released and unmodified, through the proxy that stands for the internet."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import uuid
import zipfile
from pathlib import Path

import cbor2
import pytest

from tests.support.commands.nrfcloud_tools import INSTALLED, internet, public_pem, run

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(
        not INSTALLED, reason="nrfcloud-utils is not installed: run ./scripts/peers"
    ),
]


def attestation_token(device: uuid.UUID) -> str:
    body = cbor2.dumps(cbor2.CBORTag(55799, [1, device.bytes, 2, bytes(16), bytes(16)]))
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


@pytest.mark.contract("D9.3", "D10.8")
async def test_it_onboards_devices_and_reports_the_rows_that_fail(tmp_path: Path) -> None:
    async with internet(tmp_path) as (standin, environment):
        rows = f'nrf-352656109000101,kit,bench|new,APP|MODEM,"{public_pem()}"\n'
        (tmp_path / "good.csv").write_text(rows)
        (tmp_path / "bad.csv").write_text(rows + "nrf-352656109000102,,,APP,nonsense\n")
        key = ("--api-key", standin.credentials["api_key"], "--plain")
        code, output = await run(
            environment, tmp_path, "nrf_cloud_onboard", *key, "--csv", "good.csv", "--res", "r.csv"
        )
        assert code == 0, output
        assert "nrf-352656109000101,OK" in (tmp_path / "r.csv").read_text(), output
        device = (
            await standin.client.get(
                "/v1/devices/nrf-352656109000101", headers=standin.bearer("api_key")
            )
        ).json()
        assert device["tags"] == ["bench", "new"]
        assert device["firmware"]["supports"] == ["APP", "MODEM"]
        _, output = await run(
            environment, tmp_path, "nrf_cloud_onboard", *key, "--csv", "bad.csv", "--res", "b.csv"
        )
        result = (tmp_path / "b.csv").read_text()
        assert "nrf-352656109000101,OK" in result, output
        assert "nrf-352656109000102,the PEM is malformed" in result, output


@pytest.mark.contract("D4.1", "D9.2")
async def test_it_lists_bundles_and_devices_and_makes_a_fota_job(tmp_path: Path) -> None:
    async with internet(tmp_path) as (standin, environment):
        manifest = {
            "name": "app",
            "fwversion": "2.0.1",
            "format-version": 1,
            "files": [{"file": "app.bin", "type": "application", "size": 4}],
        }
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as bundle:
            bundle.writestr("manifest.json", json.dumps(manifest))
            bundle.writestr("app.bin", b"test")
        sent = await standin.client.post(
            "/v1/firmwares",
            headers=standin.bearer("api_key") | {"Content-Type": "application/zip"},
            content=archive.getvalue(),
        )
        assert sent.status_code == 202, sent.text
        (listed,) = (
            await standin.client.get("/v1/firmwares", headers=standin.bearer("api_key"))
        ).json()["items"]
        code, output = await run(
            environment,
            tmp_path,
            "nrf_cloud_device_mgmt",
            *("--api-key", standin.credentials["api_key"], "--type", "APP"),
            *("--dev-id", "nrf-352656109000002", "--bundle-id", listed["bundleId"]),
            *("--name", "peer", "--desc", "made by a released tool"),
            said="y\n",
        )
        assert code == 0, output
        pending = await standin.client.get(
            "/v1/fota-job-executions/nrf-352656109000002/current", headers=standin.bearer("api_key")
        )
        assert pending.status_code == 200, output
        assert pending.json()["jobDocument"]["bundleId"] == listed["bundleId"]


@pytest.mark.contract("D10.8")
async def test_it_claims_devices(tmp_path: Path) -> None:
    async with internet(tmp_path) as (standin, environment):
        devices = [uuid.uuid4() for _ in range(3)]
        rows = [f"35265610900020{n},{d},{attestation_token(d)},now" for n, d in enumerate(devices)]
        (tmp_path / "tokens.csv").write_text("\n".join(rows) + "\n")
        code, output = await run(
            environment,
            tmp_path,
            "claim_devices",
            *("--api-key", standin.credentials["api_key"], "--plain", "--csv", "tokens.csv"),
            *("--provisioning-tags", "bench,new"),
        )
        assert code == 0, output
        assert "3 of 3 devices claimed" in output
        claimed = await standin.client.get(
            standin.urls["provisioning"] + "/v1/claimed-devices", headers=standin.bearer("api_key")
        )
        assert {item["id"] for item in claimed.json()["items"]} == set(map(str, devices))


async def test_the_proxy_forwards_nothing_to_anywhere_else(tmp_path: Path) -> None:
    async with internet(tmp_path) as (_, environment):
        port = int(environment["HTTPS_PROXY"].rpartition(":")[2])
        for line in ("CONNECT example.com:443", "GET http://example.com/", "CONNECT [::1]:22"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"{line} HTTP/1.1\r\n\r\n".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 403")
            writer.close()
            await writer.wait_closed()
