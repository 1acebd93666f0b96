"""Claimed devices, provisioning commands and rules at the stand-in."""

from __future__ import annotations

import base64
import uuid

from cryptography import x509

from tests.support.cloud.device_api import Api
from tests.support.cloud.standin import StandIn

DEVICE = uuid.UUID("50363154-3930-4d96-80f9-13121cf35adc")
OTHER = uuid.UUID(int=DEVICE.int + 1)


def attestation_token(device: uuid.UUID) -> str:
    """Return an attestation token of a device; the stand-in checks its form alone."""
    body = bytes.fromhex("d9d9f78501") + b"\x50" + device.bytes
    body += b"\x01\x50" + bytes(16) + b"\x50" + bytes(16)
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode() + ".c2lnbmF0dXJl"


async def test_a_device_is_claimed_once_and_can_be_released(api: Api) -> None:
    claim = {"claimToken": attestation_token(DEVICE), "tags": ["a", "a"]}
    path = f"/claimed-devices/{DEVICE}"
    dry = await api.call("POST", "/claimed-devices", params={"dryrun": "true"}, json=claim)
    assert dry.status_code == 202
    assert (await api.call("GET", path)).status_code == 404
    made = await api.call("POST", "/claimed-devices", json=claim)
    assert made.status_code == 201, made.text
    assert (made.json()["id"], made.json()["tags"]) == (str(DEVICE), ["a"])
    assert (await api.call("POST", "/claimed-devices", json=claim)).status_code == 409
    assert (await api.get("/claimed-devices"))["items"] == [made.json()] == [await api.get(path)]
    stale = await api.call("DELETE", path, headers={"If-Match": "x"})
    assert stale.status_code == 412
    assert (await api.call("DELETE", path)).status_code == 204
    assert (await api.call("GET", path)).status_code == 404


async def test_the_tag_and_the_names_of_the_services_own_guide_are_taken(api: Api) -> None:
    claim = {"claimToken": attestation_token(DEVICE), "tags": ["location=Trondheim"]}
    made = await api.call("POST", "/claimed-devices", json=claim)
    assert made.status_code == 201, made.text
    assert made.json()["tags"] == ["location=Trondheim"]
    names = "O=Nordic Semiconductor,L=Trondheim,C=no,CN=0123456789"
    command = {"certificateSigningRequest": {"secTag": 16852753, "attributes": names}}
    path = f"/claimed-devices/{DEVICE}/provisioning"
    commanded = await api.call("POST", path, json={"request": command})
    assert commanded.status_code == 201, commanded.text


async def test_a_token_of_another_form_claims_nothing(api: Api) -> None:
    for token in ("", "x" * 40, attestation_token(DEVICE)[1:], attestation_token(DEVICE) + "!"):
        answer = await api.call("POST", "/claimed-devices", json={"claimToken": token})
        assert answer.status_code == 422, token
    assert (await api.get("/claimed-devices"))["items"] == []


async def test_the_rows_of_a_csv_are_claimed_and_those_that_fail_are_named(api: Api) -> None:
    rows = [attestation_token(DEVICE), attestation_token(OTHER) + ",a,b", attestation_token(DEVICE)]
    text = "\n".join([*rows[:1], rows[1].replace(",a,b", ',"a,b"'), rows[2]])
    answer = await api.call("POST", "/claimed-devices", content=text)
    assert answer.status_code == 201, answer.text
    assert answer.json()["claimedIds"] == [str(DEVICE), str(OTHER)]
    (failed,) = answer.json()["failed"]
    assert (failed["row"], "claimed already" in failed["message"]) == (2, True)
    assert (await api.get(f"/claimed-devices/{OTHER}"))["tags"] == ["a", "b"]


async def test_a_command_is_pending_then_in_progress_then_answered(
    standin: StandIn, api: Api
) -> None:
    standin.clock.freeze()
    await api.call("POST", "/claimed-devices", json={"claimToken": attestation_token(DEVICE)})
    many = f"/claimed-devices/{DEVICE}/provisioning"
    command = {"certificateSigningRequest": {"secTag": 1, "attributes": "O=Acme,CN=kit-1"}}
    made = await api.call("POST", many, json={"request": command})
    assert made.status_code == 201, made.text
    one = f"{many}/{made.json()['id']}"
    statuses = []
    for _ in range(3):
        shown = await api.get(one)
        statuses.append(shown["status"])
        standin.clock.advance(standin.cloud.settings.bulk_s * 0.6)
    assert statuses == ["PENDING", "IN_PROGRESS", "SUCCEEDED"]
    csr = shown["response"]["certificateSigningRequest"]["csr"]
    request = x509.load_der_x509_csr(base64.urlsafe_b64decode(csr + "=" * (-len(csr) % 4)))
    assert request.subject.rfc4514_string() == "O=Acme,CN=kit-1"
    assert (await api.get(one))["response"] == shown["response"]
    assert [item["id"] for item in (await api.get(many))["items"]] == [shown["id"]]
    unknown = await api.call("POST", many, json={"request": {"explode": {}}})
    assert unknown.status_code == 422
    elsewhere = await api.call("GET", f"/claimed-devices/{OTHER}/provisioning")
    assert elsewhere.status_code == 404


async def test_a_command_that_the_stand_in_answered_for_the_device_says_so(
    standin: StandIn, api: Api
) -> None:
    standin.clock.freeze()
    await api.call("POST", "/claimed-devices", json={"claimToken": attestation_token(DEVICE)})
    many = f"/claimed-devices/{DEVICE}/provisioning"
    made = await api.call("POST", many, json={"request": {"finished": {}}})
    assert "answeredBy" not in made.json()
    standin.clock.advance(standin.cloud.settings.bulk_s)
    (shown,) = (await api.get(many))["items"]
    assert (shown["status"], shown["answeredBy"]) == ("SUCCEEDED", "stand-in")


async def test_the_commands_of_a_device_that_nobody_plays_stay_pending(
    standin: StandIn, api: Api
) -> None:
    standin.clock.freeze()
    await api.call("POST", "/claimed-devices", json={"claimToken": attestation_token(DEVICE)})
    many = f"/claimed-devices/{DEVICE}/provisioning"
    made = await api.call(
        "POST", many, json={"request": {"clientPrivateKeyGeneration": {"secTag": 1}}}
    )
    one = f"{many}/{made.json()['id']}"
    standin.cloud.settings.play_claimed_devices = False
    standin.clock.advance(3600)
    shown = await api.get(one)
    assert shown["status"] == "PENDING"
    assert not {"response", "answeredBy"} & shown.keys()
    assert shown["$meta"] == made.json()["$meta"]
    standin.cloud.settings.play_claimed_devices = True
    assert (await api.get(one))["status"] == "SUCCEEDED"
    standin.cloud.settings.play_claimed_devices = False
    assert (await api.get(one))["status"] == "SUCCEEDED"


async def test_a_rule_is_replaced_by_one_of_its_name(api: Api) -> None:
    path = "/provisioning-rules"
    first = await api.call("POST", path, json={"name": "bench", "tags": ["a", "a"]})
    assert (first.status_code, first.json()["tags"]) == (201, ["a"])
    stale = await api.call("POST", path, json={"name": "bench"}, headers={"If-Match": "x"})
    assert stale.status_code == 412
    second = await api.call("POST", path, json={"name": "bench"})
    assert second.status_code == 201
    assert (await api.get(path))["items"] == [second.json()]
    assert (await api.get("/provisioning/tags"))["items"] == []
