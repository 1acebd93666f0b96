"""A thousand redirects: no secret leaves the origin that it is for."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from agent.auth.bearer import ApiKey, OrganizationToken
from agent.auth.credential import Basic, Keyring, ProjectKey
from agent.call import Call, Host, Request, Response, Scheme
from agent.config.secrets import Secret
from agent.errors import AgentError
from agent.http import HttpClient
from tests.support.cloud.answering_transport import answering_transport

CANARY = "canary-7d3f-of-the-test"
HOSTS = {
    Host.DEVICE_CLOUD: "https://cloud.example",
    Host.API: "https://api.example:8443/base",
    Host.CHUNKS: "https://chunks.example",
    Host.INGRESS: "https://ingress.example",
    Host.FILES: "https://files.example",
}
PLACES = [
    "https://evil.example/",
    "https://cloud.example.evil.example/",
    "https://cloud.example@evil.example/",
    "//evil.example/x",
    "///evil.example/x",
    "/\\evil.example/x",
    "\\\\evil.example\\x",
    "https:evil.example",
    "https://cloud.example:444/",
    "http://cloud.example/",
    "HTTPS://EVIL.example/",
    "https://127.0.0.1/",
    "http://127.0.0.1/",
    "http://localhost/",
    "https://[::1]/",
    "https://evil.example#@cloud.example",
    "https://evil.example\\@cloud.example",
    "https://xn--cloud-example/",
    "https://cloud\u3002example/",
    "/same/host",
    "same/host",
    "?same=host",
    "",
    "ftp://evil.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/plain,x",
    "https://",
    "https://evil.example:99999/",
    "https://evil.example:x/",
    " https://evil.example/",
    "https://user:pw@cloud.example/",
    "https://cloud.example./",
    "https://api.example:8443/",
    "https://api.example/",
    "\t//evil.example",
    "https://evil.example/\r\nX: 1",
]


@dataclass(frozen=True, slots=True)
class Anything(Call[Any]):
    target: Host
    method: str
    path: str
    kinds: tuple[Scheme, ...]

    follows = True
    repeatable = True

    @property
    def host(self) -> Host:  # type: ignore[override]
        return self.target

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        return self.kinds

    def request(self) -> Request:
        return Request(
            self.method, self.path, json={"secret?": "no"} if self.method == "POST" else None
        )

    def parse(self, response: Response) -> Any:
        return response.status


CALLS = [
    (Host.DEVICE_CLOUD, "/v1/devices", (Scheme.API_KEY,)),
    (
        Host.DEVICE_CLOUD,
        "/v1/organizations/o/projects/p/location/wifi",
        (Scheme.ORGANIZATION_TOKEN,),
    ),
    (Host.API, "/api/v0/organizations", (Scheme.ORGANIZATION_TOKEN,)),
    (Host.API, "/auth/me", (Scheme.BASIC,)),
    (Host.API, "/api/v0/releases/latest", (Scheme.PROJECT_KEY,)),
    (Host.CHUNKS, "/api/v0/chunks/SERIAL", (Scheme.PROJECT_KEY,)),
    (Host.INGRESS, "/api/v0/events", (Scheme.PROJECT_KEY,)),
    (Host.FILES, "/api/v0/upload", (Scheme.PROJECT_KEY,)),
]


def carries_secret(request: httpx.Request) -> bool:
    sent = str(request.url) + repr(request.headers.raw) + repr(request.content)
    basic = Basic("me@b.example", Secret(CANARY), is_password=False)._header
    return CANARY in sent or basic.removeprefix("Basic ") in sent


class Trail:
    """Answers with one redirect after another, and keeps what reached whom."""

    def __init__(self) -> None:
        self.leaks: list[str] = []
        self.said: list[str] = []
        self.followed = 0
        self.at_home = 0

    def start(self, home: httpx.URL, hops: list[str], dice: random.Random) -> None:
        self.home, self.hops, self.dice = home, iter(hops), dice

    def answer(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        same = (url.scheme, url.raw_host, url.port) == (
            self.home.scheme,
            self.home.raw_host,
            self.home.port,
        )
        if carries_secret(request):
            self.at_home += 1
            if not same:
                self.leaks.append(str(url))
        elif not same:
            self.followed += 1
        place = next(self.hops, None)
        if place is None:
            return httpx.Response(200, json=1)
        status = self.dice.choice([301, 302, 303, 307, 308])
        # Raw bytes: a server may send what no client library would.
        return httpx.Response(status, headers=[(b"location", place.encode("utf-8"))])


@pytest.mark.contract("O4.3", "D8.5")
async def test_in_a_thousand_redirects_no_secret_reaches_another_origin() -> None:
    dice = random.Random(20260102)
    keyring = Keyring(
        [
            ApiKey(Secret(CANARY)),
            OrganizationToken(Secret("oat_" + CANARY)),
            Basic("me@b.example", Secret(CANARY), is_password=False),
            ProjectKey(Secret(CANARY)),
        ]
    )
    trail = Trail()
    for _ in range(1000):
        host, path, kinds = dice.choice(CALLS)
        hops = [dice.choice(PLACES) for _ in range(dice.randint(1, 4))]
        if dice.random() < 0.3:
            hops.append(HOSTS[host] + "/back")  # by way of another host and back home
        trail.start(httpx.URL(HOSTS[host]), hops, dice)
        client = HttpClient(answering_transport(trail.answer), HOSTS, keyring, jitter=lambda: 0.0)
        method = dice.choice(["GET", "GET", "HEAD", "POST"])
        try:
            await client.send(Anything(host, method, path, kinds))
        except AgentError as error:
            trail.said.append(f"{error} {error.hint}")
    assert trail.leaks == []
    assert trail.followed > 50
    assert trail.at_home >= 1000
    assert CANARY not in "".join(trail.said)
