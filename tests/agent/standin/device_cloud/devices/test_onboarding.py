"""Devices that are onboarded and claimed at the stand-in (clauses D2.2, D10.8)."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.device_cloud.devices.claiming import CLAIMS
from agent.standin.device_cloud.devices.credentials import KEYS, NEW_DEVICES, CsvTable
from agent.standin.device_cloud.devices.onboarding import PROJECT_DEVICES
from agent.standin.device_cloud.routes import every_operation
from agent.standin.state import PROJECT_WITHOUT_LOCATION
from tests.support.cloud.device_api import Api, device_path
from tests.support.cloud.device_tokens import fetch, token, upload
from tests.support.cloud.standin import StandIn
from tests.support.keys.key_files import pem


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
    none = await standin.client.put("/v1/association/kit-2", content=" ", headers=api)
    assert (none.status_code, none.json()["code"]) == (401, 40102)
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


UUID = "50363154-3930-4d96-80f9-13121cf35adc"


def registration(standin: StandIn, key: ec.EllipticCurvePrivateKey, **changed: str) -> str:
    """What an nRF93M1 answers to AT%REGJWT."""
    return token(key, {"sub": UUID, "id": standin.cloud.team_id} | changed)


@pytest.mark.contract("D10.8")
async def test_a_device_is_onboarded_by_the_token_that_names_it_and_its_team(
    standin: StandIn, api: Api
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    described = {"subType": "nRF93M1", "tags": ["kit"], "supportedFirmwareTypes": ["MODEM"]}
    for wrong in (
        registration(standin, key, sub="another"),
        registration(standin, key, id="another"),
        token(key, {"sub": UUID}),
        token(key, {"sub": UUID, "id": 1}),
        registration(standin, key).rsplit(".", 1)[0] + ".AAAA",
    ):
        body = {"onboardingToken": wrong, **described}
        refused = await api.call("POST", device_path(UUID), json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, 40001), refused.text
        assert wrong not in refused.text
    assert (await api.call("GET", device_path(UUID))).status_code == 404
    body = {"onboardingToken": registration(standin, key), **described}
    assert (await api.call("POST", device_path(UUID.upper()), json=body)).status_code == 202
    made = await api.get(device_path(UUID))
    assert (made["subType"], made["firmware"]["supports"]) == ("nRF93M1", ["MODEM"])
    as_pem = await api.call("POST", device_path(UUID), json={"onboardingToken": pem(key)})
    assert as_pem.status_code == 422


@pytest.mark.contract("D10.8")
async def test_the_registered_key_of_a_device_signs_its_onboarding_token(
    standin: StandIn, api: Api
) -> None:
    own, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    await upload(standin, "public-keys", f'{UUID},"{pem(own)}"\n')
    for key, status in ((other, 400), (own, 202)):
        body = {"onboardingToken": registration(standin, key)}
        assert (await api.call("POST", device_path(UUID), json=body)).status_code == status


@pytest.mark.contract("D10.8")
async def test_devices_of_a_project_are_made_in_bulk_by_their_tokens(
    standin: StandIn, api: Api
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = standin.organization, standin.project
    path = "/organizations/{}/projects/{}/long-range/devices/bulk".format(*names)
    owner = standin.bearer("organization_auth_token") | {"Content-Type": "text/csv"}
    wrong = f"nrf-1,{registration(standin, key)}\n"
    for rows, status, refused in (
        (f"{UUID},{registration(standin, key)}\n" + wrong, "SUCCEEDED", [1]),
        (wrong, "FAILED", [0]),
    ):
        sent = await standin.client.post(
            f"/v1{path}", headers=owner, content="deviceId,onboardingToken\n" + rows
        )
        assert sent.status_code == 202, sent.text
        standin.clock.advance(1)
        shown = (await standin.client.get(sent.headers["Location"], headers=owner)).json()
        assert shown["status"] == status
        assert [one["row"] for one in shown["errorSummary"]["errors"]] == refused
    assert (await api.get(device_path(UUID)))["id"] == UUID
    assert (await api.call("GET", device_path("nrf-1"))).status_code == 404


async def test_the_request_of_a_project_is_not_found_under_another(standin: StandIn) -> None:
    owner = standin.bearer("organization_auth_token")
    bulk = "/v1/organizations/{}/projects/{}/long-range/devices/bulk"
    projects = standin.project, PROJECT_WITHOUT_LOCATION
    here, there = (bulk.format(standin.organization, project) for project in projects)
    sent = await standin.client.post(
        here, headers=owner | {"Content-Type": "text/csv"}, content="deviceId,certificate\nx,y\n"
    )
    key = sent.headers["Location"].rpartition("/")[2]
    for path, status in ((here, 200), (there, 404)):
        answer = await standin.client.get(f"{path}/{key}", headers=owner)
        assert answer.status_code == status


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
        assert "$meta" in schema["required"]
