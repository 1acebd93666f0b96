"""A kit takes its provisioning commands from the stand-in, which then plays it no more."""

from __future__ import annotations

import uuid
from typing import Any

import cbor2
import httpx
import pytest

from agent.standin import jwt
from tests.support.cloud.device_api import Api
from tests.support.cloud.standin import StandIn

DEVICE = uuid.UUID("50363154-3930-4d96-80f9-13121cf35adc")
MANY = f"/claimed-devices/{DEVICE}/provisioning"
CSR = {"certificateSigningRequest": {"secTag": 7, "attributes": "O=Acme", "keyUsage": "101010000"}}
CHAIN = {"serverCertificate": {"secTag": 7, "content": "TEST ONLY"}}


def token(standin: StandIn, device: object = DEVICE, **claims: object) -> dict[str, str]:
    now = int(standin.clock.time())
    private, _ = jwt.new_key()
    whole = {"iss": f"nRF9151.{device}", "iat": now, "exp": now + 300, **claims}
    return {"Authorization": f"Bearer {jwt.sign(whole, private)}"}


class Kit:
    """The client of a kit, as far as HTTP and CBOR."""

    def __init__(self, standin: StandIn) -> None:
        self.standin = standin

    async def fetch(self, headers: dict[str, str] | None = None, **query: object) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"{self.standin.urls['provisioning']}/v1/provisioning/commands"
            headers = token(self.standin) if headers is None else headers
            return await client.get(url, headers=headers, params={"limit": 5, **query})

    async def answer(self, *answers: Any, body: bytes | None = None) -> int:
        async with httpx.AsyncClient(trust_env=False) as client:
            url = f"{self.standin.urls['provisioning']}/v1/provisioning/response"
            headers = {**token(self.standin), "Content-Type": "application/cbor"}
            content = cbor2.dumps(list(answers)) if body is None else body
            return (await client.post(url, headers=headers, content=content)).status_code


@pytest.fixture
async def kit(standin: StandIn, api: Api) -> Kit:
    from agent.standin.device_cloud.tables import CLAIMED, Claimed

    claimed = Claimed(team=standin.team_id, tags=[], claimed_at=standin.clock.time())
    standin.cloud.table(CLAIMED).put(str(DEVICE), claimed)
    standin.clock.freeze()
    return Kit(standin)


async def give(api: Api, *requests: dict[str, Any]) -> list[str]:
    made = [await api.call("POST", MANY, json={"request": one}) for one in requests]
    return [one.json()["id"] for one in made]


async def test_commands_come_as_a_kit_takes_them_and_wait_for_its_answers(
    standin: StandIn, api: Api, kit: Kit
) -> None:
    assert (await kit.fetch()).status_code == 204
    csr, chain, end = await give(api, CSR, CHAIN, {"finished": {}})
    standin.clock.advance(3600)  # it is not played: a kit has asked
    assert (await api.get(f"{MANY}/{csr}"))["status"] == "PENDING"
    given = await kit.fetch()
    assert cbor2.loads(given.content) == [
        [csr, 0, "%KEYGEN", '7,2,0,"O=Acme","101010000"', []],
        [chain, 0, "%CMNG", '0,7,0,"TEST ONLY"', []],
        [end, 2],
    ]
    assert len(cbor2.loads((await kit.fetch(limit=1)).content)) == 1
    assert (
        await kit.answer([csr, 100, '%KEYGEN: "AAAA.BBBB"\r\nOK\r\n'], [chain, 99, 515, "E"]) == 200
    )
    shown = await api.get(f"{MANY}/{csr}")
    assert (shown["status"], shown["response"]) == (
        *("SUCCEEDED",),
        {"certificateSigningRequest": {"csr": "AAAA.BBBB"}},
    )
    assert "answeredBy" not in shown
    failed = await api.get(f"{MANY}/{chain}")
    assert (failed["status"], failed["response"]["serverCertificate"]["code"]) == ("FAILED", 515)
    assert cbor2.loads((await kit.fetch()).content) == [[end, 2]]
    assert await kit.answer([end, 102], ["no-such-command", 102]) == 200
    assert (await kit.fetch()).status_code == 204


async def test_who_is_not_claimed_gets_nothing(standin: StandIn, kit: Kit) -> None:
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer no.token.here"}, 401),
        (token(standin, exp=1), 401),
        (token(standin, uuid.UUID(int=1)), 403),
        (token(standin, ""), 403),
    ):
        assert (await kit.fetch(headers)).status_code == status


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\xff", b"{}", cbor2.dumps({"a": 1}), cbor2.dumps([1]), cbor2.dumps([["x"]]),
        cbor2.dumps([["x", 100]]), cbor2.dumps([["x", 99, "1", "E"]]), cbor2.dumps([[1, 102]]),
        cbor2.dumps([["x", 55]]), cbor2.dumps([["x", 102]]) + b"\x00", cbor2.dumps([["x", [], 1]]),
    ],
)  # fmt: skip
async def test_an_answer_of_another_grammar_is_refused(kit: Kit, body: bytes) -> None:
    assert await kit.answer(body=body) == 400


async def test_what_no_kit_is_known_to_take_is_played(standin: StandIn, api: Api, kit: Kit) -> None:
    assert (await kit.fetch()).status_code == 204
    [made] = await give(api, {"cloudAccessKeyGeneration": {"secTag": 7}})
    assert (await kit.fetch()).status_code == 204
    standin.clock.advance(3600)
    assert (await api.get(f"{MANY}/{made}"))["answeredBy"] == "stand-in"
