"""Devices are onboarded below a project, and found there by paths that the profile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from agent.auth.bearer import ApiKey, OrganizationToken
from agent.auth.credential import Keyring
from agent.call import Call, Host, Response
from agent.cloud import DeviceCloud, device_changes, device_reads
from agent.cloud.project_devices import OnboardInProject, ProvenBy
from agent.config.project import ProjectSlugs
from agent.config.secrets import Secret
from agent.errors import BadAnswer, CredentialMissing, DeadlineExceeded, ServiceRefusal, UsageError
from agent.http import HttpClient
from agent.provisioning.ca.certificates import pem_of, self_signed
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.kit_gates import open_gate
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import client_with, organization_token

HERE = ProjectSlugs("acme", "kits")
PREFIX = "/v1/organizations/acme/projects/kits"
ID = "kit-1"


def call(*rows: tuple[str, str]) -> OnboardInProject:
    return OnboardInProject(HERE, ProvenBy.REGISTRATION, rows)


def certificate(device_id: str) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    return pem_of(self_signed(key, device_id, datetime.now(UTC), timedelta(days=3)))


def test_the_rows_have_the_heading_of_what_proves_them() -> None:
    request = OnboardInProject(HERE, ProvenBy.CERTIFICATE, ((ID, "-----\nA\n-----\n"),)).request()
    assert (request.method, request.path) == ("POST", f"{PREFIX}/long-range/devices/bulk")
    assert request.content == b'deviceId,certificate\nkit-1,"-----\nA\n-----\n"\n'
    assert call((ID, "a.b.c")).request().content == b"deviceId,onboardingToken\nkit-1,a.b.c\n"
    assert "a.b.c" not in repr(call((ID, "a.b.c")))


@pytest.mark.parametrize("rows", [(), ((ID, " "),), (("", "a.b.c"),), ((ID, "x"),) * 1001])
def test_what_the_service_refuses_whole_is_not_sent(rows: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(UsageError):
        call(*rows).request()


@pytest.mark.parametrize(
    ("headers", "body", "place"),
    [
        ({"location": "/v1/x/7"}, b"", "/v1/x/7"),
        ({"location": "https://elsewhere.example/v1/x/7?a=1"}, b"", "/v1/x/7?a=1"),
        ({}, b'{"url": "/v1/x/8"}', "/v1/x/8"),
        ({}, b"[]", None),
        ({"location": "https://elsewhere.example/collect"}, b"", None),
        ({"location": "/v2/x/7"}, b"", None),
        ({"location": "/v1/x\u0085/7"}, b"", None),
        ({"location": "https://[::1/v1/x/7"}, b"", None),
    ],
)
def test_the_token_goes_to_no_other_host_whatever_the_answer_names(
    headers: dict[str, str], body: bytes, place: str | None
) -> None:
    answer = Response(202, headers, body)
    if place is None:
        with pytest.raises(BadAnswer):
            call().parse(answer)
    else:
        assert call().parse(answer) == place


async def test_refused_rows_are_named_and_the_others_are_there(standin: StandIn) -> None:
    spent: list[float] = []

    async def sleep(seconds: float) -> None:
        spent.append(seconds)
        standin.clock.advance(seconds)

    project = ProjectSlugs(standin.organization, standin.project)
    async with client_with(standin, organization_token(standin)) as client:
        cloud = DeviceCloud(client, sleep=sleep, monotonic=lambda: sum(spent))
        rows = [(ID, certificate(ID)), ("kit-2", certificate(ID).rstrip())]
        place = await cloud.onboard_in_project(project, ProvenBy.CERTIFICATE, rows)
        with pytest.raises(ServiceRefusal, match="SUCCEEDED") as refused:
            await cloud.wait_for_onboarding(place)
        assert refused.value.hint == "row 1, kit-2: the last line of the certificate does not end"
        place = await cloud.onboard_in_project(project, ProvenBy.CERTIFICATE, rows[:1])
        with pytest.raises(DeadlineExceeded, match="did not end") as late:
            await cloud.wait_for_onboarding(place, deadline_s=0)
        assert "`cellagent provision run` again" in late.value.hint
        assert (await cloud.wait_for_onboarding(place)).errors == []
    found = await standin.client.get(f"/v1/devices/{ID}", headers=standin.bearer("api_key"))
    assert found.status_code == 200


PATHS = {"/v1/devices": f"{PREFIX}/devices"}
IN_PROJECT: list[tuple[Call[object], str]] = [
    (device_reads.ListDevices(device_reads.Filter()), "/devices"),
    (device_reads.FetchDevice(ID), f"/devices/{ID}"),
    (device_changes.UpdateDeviceState(ID, {}, None, None), f"/devices/{ID}/state"),
    (device_changes.DeleteDevice(ID, None), f"/devices/{ID}"),
]


@pytest.mark.parametrize(("wanted", "path"), IN_PROJECT, ids=lambda one: type(one).__name__)
async def test_a_path_that_the_profile_names_takes_the_organization_token(
    wanted: Call[object], path: str
) -> None:
    asked: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.url.path, request.headers["authorization"]))
        return httpx.Response(200, json={"items": [], "id": ID, "$meta": {}})

    def client(*keys: object, named: dict[str, str]) -> HttpClient:
        return HttpClient(
            answering_transport(answer), {Host.DEVICE_CLOUD: "https://cloud.example"},
            Keyring(keys), kit_gate=open_gate, project_paths=named,  # type: ignore[arg-type]
        )  # fmt: skip

    api_key, token = ApiKey(Secret("api-key-canary")), OrganizationToken(Secret("oat-canary-text"))
    await client(token, named=PATHS).send(wanted)
    await client(token, api_key, named=PATHS).send(wanted)  # API keys go on working
    old = wanted.request().path
    assert asked == [(PREFIX + path, "Bearer oat-canary-text"), (old, "Bearer api-key-canary")]
    with pytest.raises(CredentialMissing):  # no path is made up
        await client(token, named={}).send(wanted)
    with pytest.raises(CredentialMissing):
        await client(token, named={"/v1/devices/other": "/v1/x"}).send(wanted)
    assert len(asked) == 2
    await client(token, named={**PATHS, old: "/v1/of-its-own"}).send(wanted)
    assert asked[-1][0] == "/v1/of-its-own"
