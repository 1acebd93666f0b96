"""Devices that are onboarded and claimed at the stand-in (clauses D2.2, D10.8)."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from device_api import Api, device_path
from device_tokens import fetch, token
from standin import StandIn

from agent.standin.device_cloud.devices.claiming import CLAIMS
from agent.standin.device_cloud.devices.credentials import KEYS, NEW_DEVICES, CsvTable
from agent.standin.device_cloud.devices.onboarding import PROJECT_DEVICES
from agent.standin.device_cloud.routes import every_operation


@pytest.mark.contract("D10.8")
async def test_a_certificate_of_the_service_is_the_last_resort_until_the_device_is_associated(
    standin: StandIn,
) -> None:
    device, api = "kit-of-another-maker", standin.bearer("api_key")
    path = f"/v1/devices/{device}/certificates"
    made = await standin.client.post(path, content="pin-1234", headers=api)
    assert made.status_code == 201, made.text
    bundle = made.json()
    assert (bundle["clientId"], bundle["clientCert"].count("BEGIN CERTIFICATE")) == (device, 2)
    chain = x509.load_pem_x509_certificates(bundle["clientCert"].encode())
    root = x509.load_pem_x509_certificate(bundle["caCert"].encode())
    for lower, upper in zip(chain, [chain[1], root], strict=True):
        lower.verify_directly_issued_by(upper)
    key = serialization.load_pem_private_key(bundle["privateKey"].encode(), None)
    signed = token(key, {"sub": device})
    assert await fetch(standin, signed, device) == 404  # a key, and no device yet
    wrong = await standin.client.put(f"/v1/association/{device}", content="pin-1", headers=api)
    assert (wrong.status_code, wrong.json()["code"]) == (401, 40102)
    right = await standin.client.put(f"/v1/association/{device}", content="pin-1234", headers=api)
    assert right.status_code == 202
    assert await fetch(standin, signed, device) == 200
    assert (await standin.client.post(path, content=" ", headers=api)).status_code == 400


@pytest.mark.contract("D2.2")
@pytest.mark.parametrize(
    "device_id",
    [
        "AA:BB:CC:DD:EE:FF",
        "50363154-3930-4d96-80f9-13121cf35adc",
        "a name / with? odd #characters & ümläuts",
        "nrf-352656109999999",
        "x" * 128,
    ],
)
async def test_an_id_of_any_form_can_be_used(standin: StandIn, api: Api, device_id: str) -> None:
    made = await api.call(
        "PUT", "/association/" + quote(device_id, safe=""), content="ownership code"
    )
    assert made.status_code == 202
    assert (await api.get(device_path(device_id)))["id"] == device_id
    assert (await api.get("/devices", deviceIds=device_id))["items"][0]["id"] == device_id


OPERATIONS = {one.name: one for one in every_operation(0)}


@pytest.mark.contract("D9.3")
@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("RegisterPublicKeys", KEYS),
        ("RegisterCertificates", KEYS),
        ("OnboardDevices", NEW_DEVICES),
        ("CreateProjectDevices", PROJECT_DEVICES),
        ("ClaimDeviceOwnership", CLAIMS),
    ],
)
def test_a_csv_is_declared_with_the_columns_that_are_checked(name: str, table: CsvTable) -> None:
    assert OPERATIONS[name].bodies["text/csv"] == table.schema


def test_what_is_created_is_answered_with_its_id_or_its_resource() -> None:
    for name in ("RegisterPublicKeys", "RegisterCertificates", "OnboardDevices"):
        (schema,) = OPERATIONS[name].answers[202].values()
        assert schema["required"] == ["bulkOpsRequestId"]
    for name in ("CreateDeviceProvisioningCommand", "CreateProvisioningByName"):
        (schema,) = OPERATIONS[name].answers[201].values()
        assert schema["required"] == ["$meta"]
