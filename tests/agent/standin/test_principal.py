"""Whom a credential stands for: clause D10, over a socket."""

from __future__ import annotations

import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.state import API_KEYS
from tests.support.cloud.device_api import Api
from tests.support.cloud.device_tokens import DEVICE, fetch, token, upload
from tests.support.cloud.standin import StandIn
from tests.support.keys.key_files import certificate, pem
from tests.support.location.location_scans import LEGACY, PLACES, scan_at


@pytest.mark.contract("D9.3", "D10.3", "D10.8")
async def test_a_device_jwt_opens_its_device_once_its_key_is_registered(standin: StandIn) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    good = token(key, {"sub": DEVICE, "iat": int(time.time())})
    assert await fetch(standin, good) == 401
    done = await upload(standin, "public-keys", f'{DEVICE},"{pem(key)}"\n')
    assert done["status"] == "SUCCEEDED"
    assert await fetch(standin, good) == 200
    assert await fetch(standin, good, "nrf-352656109000001") == 403
    to_the_team = token(key, {"sub": DEVICE, "aud": standin.team_id})
    headers = {"authorization": f"Bearer {to_the_team}"}
    refused = await standin.client.get(f"/v1/devices/{DEVICE}", headers=headers)
    assert refused.json()["message"].endswith("a token of a device's own key has no aud")


@pytest.mark.contract("D10.3", "D10.5")
async def test_the_uuid_in_iss_stands_for_the_device_only_where_it_is_the_id(
    standin: StandIn,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    uuid = "50363154-3930-4d96-80f9-13121cf35adc"
    rows = "".join(f'{device},,,APP,"{pem(key)}"\n' for device in (uuid, "nrf-352656109000077"))
    assert (await upload(standin, "", rows))["status"] == "SUCCEEDED"
    made = token(key, {"iss": f"nRF9161.{uuid}", "jti": "nRF9161.x"})
    assert await fetch(standin, made, uuid) == 200
    assert await fetch(standin, token(key, {"iss": uuid}), uuid) == 200
    # The id of this one is not the UUID: without `sub` the token does not say which device it is.
    assert await fetch(standin, made, "nrf-352656109000077") in {401, 403}
    named = token(key, {"iss": f"nRF9161.{uuid}", "sub": "nrf-352656109000077"})
    assert await fetch(standin, named, "nrf-352656109000077") == 200
    # Only a UUID stands in `iss`: any other id there is no subject.
    posing = token(key, {"iss": "nrf-352656109000077"})
    assert await fetch(standin, posing, "nrf-352656109000077") == 401
    assert await fetch(standin, token(key, {"iss": f"x.{uuid}.y"}), uuid) == 401


@pytest.mark.contract("D10.8")
async def test_a_jitp_certificate_is_the_last_resort(standin: StandIn) -> None:
    own, jitp = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    claims = {"sub": DEVICE}
    await upload(standin, "certificates", f'{DEVICE},"{certificate(jitp, unit="JITP")}"\n')
    assert await fetch(standin, token(jitp, claims)) == 200
    await upload(standin, "certificates", f'{DEVICE},"{certificate(own)}"\n')
    assert await fetch(standin, token(own, claims)) == 200
    assert await fetch(standin, token(jitp, claims)) == 200
    # A new key overwrites the one of the same source.
    new = ec.generate_private_key(ec.SECP256R1())
    await upload(standin, "public-keys", f'{DEVICE},"{pem(new)}"\n')
    assert await fetch(standin, token(own, claims)) == 401


@pytest.mark.contract("D10.6")
async def test_the_trial_of_an_evaluation_token_ends_after_thirty_days(standin: StandIn) -> None:
    legacy = LEGACY.format("wifi")
    scan = scan_at(PLACES[0])
    header = standin.bearer("evaluation_token")
    answer = await standin.client.post(legacy, headers=header, json=scan)
    assert (answer.status_code, answer.json()["fulfilledWith"]) == (200, "WIFI_EVAL")
    standin.clock.advance(30 * 86400 - 60)
    assert (await standin.client.post(legacy, headers=header, json=scan)).status_code == 200
    standin.clock.advance(120)
    answer = await standin.client.post(legacy, headers=header, json=scan)
    assert answer.status_code == 401
    assert "service key" in answer.json()["message"]
    elsewhere = await standin.client.get("/v1/devices", headers=header)
    assert elsewhere.status_code == 401


@pytest.mark.contract("D10.4")
async def test_a_service_token_stands_for_the_team_that_made_it(standin: StandIn) -> None:
    rows = standin.cloud.table(API_KEYS).values()
    key = next(one.key for one in rows if one.team != standin.team_id)
    theirs = {"Authorization": f"Bearer {key}"}
    made = await standin.client.post("/v1/account/service-key-and-token", headers=theirs)
    token = {"Authorization": f"Bearer {made.json()['token']}", "X-Custom-Device-Id": DEVICE}
    body = scan_at(PLACES[0])
    asked = await standin.client.post(LEGACY.format("wifi"), headers=token, json=body)
    assert asked.status_code == 200
    for header, seen in ((theirs, [DEVICE]), (standin.bearer("api_key"), [])):
        history = await standin.client.get("/v1/location/history", headers=header)
        assert [one["deviceId"] for one in history.json()["items"]] == seen


@pytest.mark.contract("D10.1")
async def test_a_replaced_key_lives_for_sixty_minutes(standin: StandIn, api: Api) -> None:
    standin.clock.freeze()
    rotated = await standin.control({"rotate_api_key": True})
    new = {"Authorization": f"Bearer {rotated['api_key']}"}

    async def statuses() -> tuple[int, int]:
        old = await standin.client.get("/v1/account", headers=api.header)
        fresh = await standin.client.get("/v1/account", headers=new)
        return old.status_code, fresh.status_code

    assert await statuses() == (200, 200)
    standin.clock.advance(60 * 60)
    assert await statuses() == (200, 200)
    standin.clock.advance(1)
    assert await statuses() == (401, 200)
