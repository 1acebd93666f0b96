"""The keys that the stand-in makes (clauses D9.4, D10.4)."""

from __future__ import annotations

import time

import jwt
import pytest

from tests.support.cloud.standin import StandIn

NEW_KEY = ("POST", "/v1/account/service-key-and-token")


@pytest.mark.contract("D9.4", "D10.4")
async def test_a_new_service_key_ends_the_one_before(standin: StandIn) -> None:
    addresses = [f"40:01:7a:00:00:{n:02x}" for n in range(3)]
    body = {"accessPoints": [{"macAddress": one, "signalStrength": -60} for one in addresses]}

    async def locate(token: str) -> int:
        answer = await standin.client.post(
            "/v1/location/wifi", headers={"Authorization": f"Bearer {token}"}, json=body
        )
        return answer.status_code

    old = standin.credentials["service_token"]
    assert await locate(old) in {200, 404}
    made = await standin.client.request(*NEW_KEY, headers=standin.bearer("api_key"))
    new = made.json()
    assert await locate(old) == 401
    assert await locate(new["token"]) in {200, 404}
    claims = {"aud": standin.team_id, "iat": int(time.time())}
    signed = jwt.encode(claims, new["serviceKey"], algorithm="ES256")
    assert await locate(signed) in {200, 404}
    stranger = jwt.encode({**claims, "aud": "x"}, new["serviceKey"], algorithm="ES256")
    assert await locate(stranger) == 401
