from __future__ import annotations

from contextlib import nullcontext

import httpx
import pytest
from answering_transport import answering_transport
from kit_gates import verdict_on

from agent.auth.bearer import ApiKey
from agent.auth.credential import Credential, Keyring
from agent.auth.modem_jwt import ModemJwt
from agent.call import Host, Scheme
from agent.config.secrets import Secret
from agent.errors import RefusedByRule
from agent.fota.jobs import JobStatus
from agent.http import HttpClient
from agent.wiring.update_sources import DeviceJobs
from at.firmware_gate import FirmwareVerdict, firmware_verdict
from at.tokens.jwt import Jwt

NO_JOB = httpx.Response(404, json={"code": 40400, "message": "no job"})


@pytest.mark.contract("D1.3", "D1.4", "D9.2")
@pytest.mark.parametrize("prefer", [None, Scheme.DEVICE_JWT])
@pytest.mark.parametrize(
    ("firmware", "api_key", "sent"),
    [
        ("mfw_nrf9160_1.2.7", True, True),  # by the user, to refuse
        ("mfw_nrf9160_1.2.7", False, False),
        ("ERROR", True, False),
        ("mfw-pti_nrf91x1_2.3.8", True, False),
        ("mfw-nr+_nrf91x1_1.1.0", True, False),
    ],
)
async def test_of_a_refused_modem_a_user_alone_speaks_and_only_of_one_that_is_too_old(
    firmware: str, api_key: bool, sent: bool, prefer: Scheme | None
):
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return NO_JOB if request.method == "GET" else httpx.Response(200)

    async def no_token(subject: str, life_s: int) -> Jwt:
        raise AssertionError("a modem that is refused is asked for no token")

    credentials: list[Credential] = [ModemJwt(no_token, "kit-1")]
    credentials += [ApiKey(Secret("api-key-of-a-test"))] if api_key else []
    client = HttpClient(
        answering_transport(answer),
        {Host.DEVICE_CLOUD: "https://cloud.example"},
        Keyring(credentials, prefer=prefer),
    )
    cloud = DeviceJobs(client, "kit-1", verdict_on(firmware))
    for call in (cloud.current(), cloud.report("job-1", JobStatus.REJECTED, "")):
        with nullcontext() if sent else pytest.raises(RefusedByRule):
            await call
    assert {each.headers["authorization"] for each in asked} == (
        {"Bearer api-key-of-a-test"} if sent else set()
    )


async def test_the_firmware_of_a_kit_is_asked_for_once_and_before_the_first_call():
    asked: list[str] = []

    async def ask() -> FirmwareVerdict:
        asked.append("modem")
        return firmware_verdict("mfw_nrf91x1_2.0.4")

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return NO_JOB

    client = HttpClient(
        answering_transport(answer),
        {Host.DEVICE_CLOUD: "https://cloud.example"},
        Keyring([ApiKey(Secret("api-key-of-a-test"))]),
    )
    cloud = DeviceJobs(client, "kit-1", ask)
    assert asked == []  # an install that was cut off is ended first
    assert await cloud.current() is None
    assert await cloud.current() is None
    assert asked == ["modem", "GET", "GET"]
