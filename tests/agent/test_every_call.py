"""Twelve statuses times each call: retried, renewed, re-read or refused; never without an end."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from agent.auth.credential import HOSTS, Keyring
from agent.call import Call, Host, Scheme
from agent.cloud import DeviceCloud
from agent.cloud.account import FetchAccount
from agent.cloud.device_reads import FetchDevice
from agent.errors import (
    AgentError,
    BadAnswer,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    RateLimited,
    ServerTrouble,
    Unauthorized,
)
from agent.http import HttpClient, HttpTransport
from agent.observability import KINDS, Scope
from agent.observability.api.resources import ListResources
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.every_call import CALLS
from tests.support.cloud.http_calls import at_once
from tests.support.cloud.kit_gates import open_gate
from tests.support.cloud.standin import StandIn
from tests.support.cloud.standin_clients import client_with, organization_token

STATUSES: Mapping[int, type[AgentError]] = {
    302: BadAnswer,
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: PayloadTooLarge,
    422: InvalidRequest,
    429: RateLimited,
    500: ServerTrouble,
    503: ServerTrouble,
}


class Stamp:
    """A credential that can be made anew, and counts how often it was."""

    warning = ""

    def __init__(self, scheme: Scheme, *, renewable: bool) -> None:
        self.scheme = scheme
        self.made = 0
        self._renewable = renewable

    async def headers(self, call: Call[Any]) -> Mapping[str, str]:
        self.made += 1
        return {"authorization": f"Bearer stamp-{self.made}"}

    def forget(self) -> bool:
        return self._renewable

    def advice(self, status: int) -> str:
        return ""


def client_for(call: Call[Any], answer: Any, *, renewable: bool) -> HttpClient:
    stamps = [Stamp(scheme, renewable=renewable) for scheme in HOSTS]
    hosts = {host: f"https://{host.value.replace('_', '-')}.example" for host in Host}
    return HttpClient(
        answering_transport(answer),
        hosts,
        Keyring(stamps),
        jitter=lambda: 0.0,
        kit_gate=open_gate,
        sleep=at_once,
    )


def name_of(call: Call[Any]) -> str:
    versioned = "version-" if getattr(call, "version", None) else ""
    return versioned + type(call).__name__


@pytest.mark.contract("D5.2", "D8.4", "O3.1")
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("call", CALLS, ids=name_of)
async def test_each_call_ends_for_each_status(call: Call[Any], status: int) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        place = {"location": "/elsewhere"} if len(sent) < 20 else {}
        return httpx.Response(status, headers=place, json={"code": status * 100, "message": "no"})

    client = client_for(call, answer, renewable=True)
    if status in call.accepts:
        # An answer to this call; it may say that there is no such thing, or be none it can read.
        with contextlib.suppress(BadAnswer, NotFound):
            await client.send(call)
        assert len(sent) == 1
        return
    with pytest.raises(STATUSES[status]) as caught:
        await client.send(call)
    assert type(caught.value) is STATUSES[status] or call.follows
    assert call.title in str(caught.value)
    conditional = "if-match" in sent[0].headers
    if status == 302:
        expected = 6 if call.follows else 1
    elif status == 401:
        expected = 1 if call.schemes == (Scheme.NONE,) else 2
        if expected == 2:
            assert sent[0].headers["authorization"] != sent[1].headers["authorization"]
    elif status in {429, 503}:
        expected = 4
    elif status == 500:
        expected = 4 if call.repeatable and not conditional else 1
    else:
        expected = 1
    assert len(sent) == expected
    assert len({request.content for request in sent}) == 1


@pytest.mark.contract("O1.5")
@pytest.mark.parametrize("call", CALLS, ids=name_of)
async def test_a_page_is_no_answer_to_any_call(call: Call[Any]) -> None:
    """A captive portal answers everything with 200: nothing has arrived, and nothing was done."""

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, html="<!doctype html><title>Log in</title>")

    with pytest.raises(BadAnswer, match="text/html") as caught:
        await client_for(call, answer, renewable=True).send(call)
    assert call.title in str(caught.value)


async def test_a_refused_token_is_renewed_once_and_then_works() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        fresh = request.headers["authorization"] == "Bearer stamp-2"
        return httpx.Response(200 if fresh else 401, json={"id": "d"})

    client = client_for(FetchDevice("d"), answer, renewable=True)
    assert (await DeviceCloud(client).device("d")).id == "d"


async def test_a_credential_that_cannot_be_renewed_is_tried_once() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(401)

    with pytest.raises(Unauthorized):
        await client_for(FetchAccount(), answer, renewable=False).send(FetchAccount())
    assert len(sent) == 1


def test_no_call_of_the_rooms_is_missing_here() -> None:
    """A new call is added to the table above, or its room tries it by its own."""

    def below(kind: type) -> set[type]:
        children = set(kind.__subclasses__())
        return children.union(*map(below, children))

    rooms = ("agent.cloud", "agent.observability.api.resources", "agent.observability.api.keys")
    ours = {
        kind.__name__  # before 3.14 a dataclass with slots is there twice: by name they are one
        for kind in below(Call)
        if kind.__module__.startswith(rooms) and not kind.__name__.startswith("_")
    }
    assert (
        ours
        - {type(call).__name__ for call in CALLS}
        - {"Change", "ListCall", "ResourceCall", "ResourceChange"}
        == set()
    )


@pytest.mark.contract("D1.2", "D1.5")
async def test_what_our_calls_take_is_what_the_service_declares(standin: StandIn) -> None:
    declared_as = {
        Scheme.API_KEY: "Simple Token",
        Scheme.DEVICE_JWT: "JSON Web Token",
        Scheme.SERVICE_JWT: "JSON Web Token",
        Scheme.SERVICE_TOKEN: "JSON Web Token",  # it is one, made by the service
        Scheme.EVALUATION_TOKEN: "Evaluation Token",
        Scheme.ORGANIZATION_TOKEN: "Organization Auth Token",
    }
    hosts = {Host.DEVICE_CLOUD: standin.urls["device_cloud"]}
    async with HttpClient(HttpTransport(), hosts) as client:
        document = await DeviceCloud(client).openapi()
    compared = 0
    for call in CALLS:
        if call.host is not Host.DEVICE_CLOUD:
            continue
        request = call.request()
        declared = document.schemes(request.method, request.path)
        ours = {declared_as[scheme] for scheme in call.schemes if scheme is not Scheme.NONE}
        assert ours == declared, type(call).__name__
        compared += 1
    assert compared > 20


@pytest.mark.contract("D4.5")
def test_only_list_and_fetch_take_a_transform() -> None:
    sending = {
        type(call).__name__
        for call in CALLS
        if "transform" in {name for name, _ in call.request().query}
    }
    assert sending == {"TransformDevices", "TransformDevice"}
    taking = {type(call).__name__ for call in CALLS if hasattr(call, "transform")}
    assert taking == sending


@pytest.mark.contract("O4.4")
async def test_what_a_schema_alone_declares_decides_nothing(standin: StandIn) -> None:
    # The observability service's document declares HTTP Basic and nothing else; the organization
    # token is what it describes beside, and what our calls send first.
    call = ListResources(KINDS["cohort"], Scope(standin.organization, standin.project))
    assert call.schemes[0] is Scheme.ORGANIZATION_TOKEN
    async with client_with(standin, organization_token(standin)) as client:
        assert (await client.send(call)).paging.total_count >= 1
