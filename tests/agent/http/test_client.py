"""The client against answers that a real server would hardly give on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from agent.auth.bearer import ApiKey
from agent.auth.credential import Keyring, ProjectKey
from agent.call import Call, Host, Request, Response, Scheme
from agent.cloud.device_changes import DeleteDevice, UpdateDeviceName
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.config.secrets import Secret
from agent.errors import (
    AgentError,
    BadAnswer,
    ConfigError,
    Conflict,
    CredentialMissing,
    DeadlineExceeded,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    RateLimited,
    ServerTrouble,
    Unauthorized,
    Unreachable,
    WrongCredential,
)
from agent.http import HttpClient, HttpTransport
from agent.http.client import refuse_any_kit
from agent.retry import NO_RETRY
from tests.support.cloud.answering_transport import answering_transport
from tests.support.cloud.http_calls import BASE, KEY, Read, client


@dataclass(frozen=True, slots=True)
class Write(Call[int]):
    schemes = (Scheme.API_KEY,)
    repeatable = False

    def request(self) -> Request:
        return Request("POST", "/v1/thing", json={"a": [1, None]})

    def parse(self, response: Response) -> int:
        return response.status


class ReadFollowing(Read):
    follows = True


@pytest.mark.contract("O1.5", "O2.4")
async def test_a_call_carries_its_credential_and_its_query_is_quoted() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"ok": True})

    assert await client(answer).send(Read()) == {"ok": True}
    (request,) = seen
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.url.query == b"transform=%7B%27a%20b%27%3A%20id%7D&x=%C3%A4%26%3D"
    assert request.headers["accept"] == "application/json"


async def test_json_is_sent_with_its_content_type() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["content-type"] == "application/json"
        assert request.content == b'{"a":[1,null]}'
        return httpx.Response(202)

    assert await client(answer).send(Write()) == 202


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "api_key is of FILE: replace it; switch it on"),
        (403, "switch it on; or use another: api_key is of FILE: replace it"),
    ],
)
async def test_what_a_call_itself_advises_does_not_hide_which_key_was_refused(
    status: int, hint: str
) -> None:
    class ReadAdvising(Read):
        def advice(self, status: int, code: int | None) -> str:
            return "switch it on"

    keyring = Keyring(
        [ApiKey(Secret(KEY))], replacing={Scheme.API_KEY: "api_key is of FILE: replace it"}
    )
    refusing = answering_transport(lambda _: httpx.Response(status))
    http = HttpClient(refusing, {Host.DEVICE_CLOUD: BASE}, keyring)
    for one in (http, http.acting_as(kit_gate=refuse_any_kit)):
        with pytest.raises(AgentError) as caught:
            await one.send(ReadAdvising())
        assert caught.value.hint == hint


STATUSES = [
    # status, its exception, requests made by a repeatable call, and by one that is not
    (301, BadAnswer, 1, 1),
    (400, InvalidRequest, 1, 1),
    (401, Unauthorized, 1, 1),
    (403, Forbidden, 1, 1),
    (404, NotFound, 1, 1),
    (408, DeadlineExceeded, 4, 1),
    (409, Conflict, 1, 1),
    (410, NotFound, 1, 1),
    (412, PreconditionFailed, 1, 1),
    (413, PayloadTooLarge, 1, 1),
    (422, InvalidRequest, 1, 1),
    (429, RateLimited, 4, 4),
    (500, ServerTrouble, 4, 1),
    (501, ServerTrouble, 1, 1),
    (503, ServerTrouble, 4, 4),
]


@pytest.mark.parametrize(("status", "kind", "reads", "writes"), STATUSES)
async def test_each_status_ends_in_its_exception_after_a_bounded_number_of_tries(
    status: int, kind: type[AgentError], reads: int, writes: int
) -> None:
    for call, expected in ((Read(), reads), (Write(), writes)):
        made = 0

        def answer(request: httpx.Request) -> httpx.Response:
            nonlocal made
            made += 1
            return httpx.Response(status, json={"code": status * 100, "message": "said so"})

        with pytest.raises(kind, match="said so") as caught:
            await client(answer).send(call)
        assert type(caught.value) is kind
        assert (caught.value.status, caught.value.code) == (status, status * 100)
        assert made == expected


async def test_a_call_that_succeeds_on_the_third_try_returns_its_answer() -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    asked_for = {"Retry-After": "3"}
    answers = iter([httpx.Response(503, headers=asked_for), httpx.Response(429, headers=asked_for),
                    httpx.Response(200, json=7)])  # fmt: skip
    assert await client(lambda request: next(answers), sleep=wait).send(Read()) == 7
    assert waited == [3.0, 3.0]


async def test_a_service_that_asks_for_a_long_wait_is_left_to_the_caller() -> None:
    made = []

    def answer(request: httpx.Request) -> httpx.Response:
        made.append(request)
        return httpx.Response(429, headers={"Retry-After": "900"})

    with pytest.raises(RateLimited) as caught:
        await client(answer).send(Read())
    assert caught.value.retry_after_s == 900
    assert len(made) == 1


async def test_what_never_reached_the_service_is_tried_again_even_if_not_repeatable() -> None:
    made = []

    def answer(request: httpx.Request) -> httpx.Response:
        made.append(request)
        if len(made) < 3:
            raise httpx.ConnectError("refused")
        return httpx.Response(202)

    assert await client(answer).send(Write()) == 202


async def test_what_may_have_arrived_is_not_sent_twice_if_not_repeatable() -> None:
    made = []

    def answer(request: httpx.Request) -> httpx.Response:
        made.append(request)
        raise httpx.ReadError("reset")

    with pytest.raises(Unreachable):
        await client(answer).send(Write())
    assert len(made) == 1
    with pytest.raises(Unreachable):  # it would be the first try that changed the version
        await client(answer).send(UpdateDeviceName("kit-1", "desk", "7"))
    assert len(made) == 2
    with pytest.raises(Unreachable):  # a second answer would be that it is not there
        await client(answer).send(DeleteDevice("kit-1"))
    assert len(made) == 3


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (httpx.Response(200, content=b"<html>"), "expected JSON, got 6 bytes"),
        (httpx.Response(200, content=b""), "expected JSON, got an empty body"),
        (httpx.Response(200, content=b"[" * 100_000), "expected JSON"),
        (httpx.Response(200, content=b'{"a": NaN}'), "expected JSON"),
        (
            httpx.Response(200, content=b"x" * (9 * 1024 * 1024)),
            "the answer of cloud.example:443 has 9",
        ),
        (
            httpx.Response(200, stream=httpx.ByteStream(b"x"), headers={"content-encoding": "br"}),
            "which was not asked for",
        ),
    ],
    ids=["html", "empty", "deep", "nan", "large", "brotli"],
)
@pytest.mark.contract("O1.5")
async def test_an_answer_that_is_not_what_it_must_be_is_named(
    response: httpx.Response, expected: str
) -> None:
    with pytest.raises(BadAnswer, match=expected) as caught:
        await client(lambda request: response).send(Read())
    assert (caught.value.status == 200) is ("expected JSON" in expected)  # else it was not read


@pytest.mark.contract("D1.2", "D1.5")
async def test_a_call_with_the_wrong_kind_is_refused_before_it_is_sent() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError("nothing may be sent")

    with pytest.raises(WrongCredential, match="it takes no device JWT, but API key"):
        await client(answer).send(Read(), scheme=Scheme.DEVICE_JWT)
    transport = answering_transport(answer)
    keyring = Keyring([ProjectKey(Secret("project-key-of-the-test"))])
    bare = HttpClient(transport, {Host.DEVICE_CLOUD: BASE}, keyring)
    with pytest.raises(CredentialMissing, match="needs API key; configured: project key") as caught:
        await bare.send(Read())
    assert "CELLAGENT_API_KEY" in caught.value.hint


async def test_a_host_without_a_url_is_a_configuration_error() -> None:
    for hosts, keyring in (
        ({}, Keyring([ApiKey(Secret(KEY))])),
        ({Host.DEVICE_CLOUD: ""}, Keyring()),  # the credential is the second thing to set
    ):
        bare = HttpClient(HttpTransport(), hosts, keyring)
        with pytest.raises(ConfigError, match=r"hosts\.device_cloud is not set"):
            await bare.send(Read())
        with pytest.raises(ConfigError, match=r"hosts\.device_cloud is not set"):
            bare.require(Read())


def test_what_a_call_lacks_is_told_before_anything_else_is_done(tmp_path: Path) -> None:
    hosts, key = {Host.DEVICE_CLOUD: BASE}, Keyring([ApiKey(Secret(KEY))])
    HttpClient(HttpTransport(), hosts, key).require(Read())
    with pytest.raises(CredentialMissing, match="needs API key"):
        HttpClient(HttpTransport(), hosts).require(Read())
    with pytest.raises(ConfigError, match=r"hosts\.ca_file"):
        HttpClient(HttpTransport(ca_file=str(tmp_path / "none")), hosts, key).require(Read())


async def test_a_credential_that_is_better_replaced_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Warned(ApiKey):
        warning = "this key is of a test"

    answering = answering_transport(lambda _: httpx.Response(200, json=1))
    for key in (Warned, Warned, ApiKey):
        keyring = Keyring([key(Secret(KEY))])
        assert await HttpClient(answering, {Host.DEVICE_CLOUD: BASE}, keyring).send(Read()) == 1
    assert [each.getMessage() for each in caplog.records] == ["this key is of a test"]


async def test_an_address_is_told_of_where_nothing_was_sent_to_it() -> None:
    def of(error: httpx.TransportError) -> HttpClient:
        def answer(request: httpx.Request) -> httpx.Response:
            raise error

        return client(answer, addresses={Host.DEVICE_CLOUD: "the address is of a test"})

    for error, begins, tells in (
        (httpx.ConnectError("no"), "check this machine's network; the address is of a test", True),
        (httpx.PoolTimeout("no"), "the address is of a test", True),
        (httpx.ReadError("no"), "if it breaks each time", False),
    ):
        with pytest.raises(Unreachable) as caught:
            await of(error).send(Read(), retries=NO_RETRY)
        assert caught.value.hint.startswith(begins)
        assert caught.value.hint.endswith("the address is of a test") is tells


@pytest.mark.contract("D1.1")
@pytest.mark.parametrize(
    "url",
    ["http://cloud.example", "ftp://cloud.example", "cloud.example", "https://", "http://10.0.0.1"],
)
def test_a_base_url_is_https_or_on_loopback(url: str) -> None:
    with pytest.raises(ConfigError, match=r"hosts\.device_cloud"):
        HttpClient(HttpTransport(), {Host.DEVICE_CLOUD: url})
    for loopback in ("http://127.0.0.1:1", "http://localhost:8080", "http://[::1]:9/base"):
        HttpClient(HttpTransport(), {Host.DEVICE_CLOUD: loopback})


async def test_a_redirect_is_followed_only_where_the_call_allows_it() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/thing":
            return httpx.Response(307, headers={"location": "/v2/thing?signature=a"})
        assert request.headers["authorization"] == f"Bearer {KEY}"
        return httpx.Response(200, json=1)

    with pytest.raises(BadAnswer, match="redirects to '/v2/thing', which is not followed"):
        await client(answer).send(Read())
    assert await client(answer).send(ReadFollowing()) == 1


async def test_an_endless_redirect_ends() -> None:
    asked = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return httpx.Response(302, headers={"location": str(request.url)})

    with pytest.raises(BadAnswer, match="more than 5 redirects"):
        await client(answer).send(ReadFollowing())
    assert asked == 6


async def test_each_request_is_told_without_its_query_also_to_who_acts_further_for_a_kit() -> None:
    told: list[tuple[str, int, bool]] = []

    async def pass_all() -> None: ...

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            raise httpx.ConnectError("no route")
        return httpx.Response(200, json=1)

    of_kit = client(answer).acting_as(
        kit_gate=pass_all,
        on_exchange=lambda what, status, _s, answered: told.append((what, status, answered)),
    )
    await of_kit.acting_as(kit_gate=pass_all).send(Read())  # as what fetches its updates
    with pytest.raises(Unreachable):
        await of_kit.send(Write(), retries=NO_RETRY)
    assert told == [("GET /v1/thing", 200, True), ("POST /v1/thing", 0, False)]


async def test_a_status_that_the_call_asks_for_is_told_as_its_answer() -> None:
    """As 404 where no update waits: the page shows what is refused in red."""
    told: list[tuple[int, bool]] = []
    asking = client(
        lambda _request: httpx.Response(404, json={"code": 40400}),
        on_exchange=lambda _what, status, _s, answered: told.append((status, answered)),
    )
    assert await asking.send(FetchCurrentJob("nrf-1", to_refuse=True)) is None
    with pytest.raises(NotFound):
        await asking.send(Read())
    assert told == [(404, True), (404, False)]
