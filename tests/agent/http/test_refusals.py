from __future__ import annotations

import httpx
import pytest

from agent.errors import AgentError, InvalidRequest, ServerTrouble, Unauthorized
from agent.http.refusals import MAX_TEXT
from agent.redact import hide
from agent.retry import NO_RETRY
from tests.support.cloud.http_calls import Read, client


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b'{"code":40410,"message":"no such device"}', "application/json", "no such device"),
        (b'{"code":true,"message":"no such device"}', "application/json", "no such device"),
        (b'["first","second"]', "application/json", "first; second"),
        (
            b'{"error":{"code":1000,"message":{"0":{"metrics":{"up":["Not a valid integer."]}}}}}',
            "application/json",
            "0.metrics.up: Not a valid integer.",
        ),
        (b'{"message":"no such CSV","cause":"row 3 is blank"}', "", "no such CSV; row 3 is blank"),
        (b'{"message":"no","cause":[{"row":3,"error":"blank"}]}', "", "no; row: 3; error: blank"),
        (b'{"message":"no","cause":{"row":["blank"]}}', "", "no; row: blank"),
        (b'{"cause":null,"message":"no reason"}', "", "no reason"),
        (b'{"Message":"User is not authorized"}', "application/json", "User is not authorized"),
        (b'{"statusCode":400,"error":"Bad Request","message":"no tag"}', "", "no tag"),
        (b'{"error":null,"message":"no tag"}', "", "no tag"),
        (b'{"error":"invalid_token"}', "", "invalid_token"),
        (
            b'{"message":"not valid","errors":[{"eci":"not there"}]}',
            "",
            "not valid; eci: not there",
        ),
        (b"<html><head><title>502 Bad &amp; Gateway</title>", "text/html", "502 Bad & Gateway"),
        (b"<body><H1>No <b>such</b> page</H1>", "text/html", "No such page"),
        (b"<html><body>neither</body>", "text/html", "400 Bad Request"),
        (b'{"errors":["first",{"field":"second"}]}', "", "first; field: second"),
        (b"plain words", "text/plain", "plain words"),
        (b'{"message":"a\\u001b[31m b\\u0000\\u202ec"}', "application/json", ": a [31m b c"),
        (b'{"message":"no /x?key=0123&name=y here"}', "application/json", ": no /x?\u2026 here"),
        (b'"a string"', "application/json", "a string"),
        (b"", "", "400 Bad Request"),
        (b"\xff\xfe\x00", "application/octet-stream", "400 Bad Request"),
        (b"[" * 100_000, "application/json", "400 Bad Request"),
        (b'{"message":{"message":{}}}', "application/json", "400 Bad Request"),
    ],
    ids=[
        *("code", "no number", "array", "nested", "cause", "causes", "fields", "no cause"),
        *("gateway", "error and message", "no error", "error", "message and errors"),
        *(
            "html",
            "heading",
            "untitled",
            "errors",
            "text",
            "control",
            "query",
            "string",
            "empty",
            "bytes",
            "deep",
            "odd",
        ),
    ],
)
async def test_every_form_of_an_error_body_is_read(body: bytes, kind: str, expected: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, content=body, headers={"content-type": kind})

    with pytest.raises(InvalidRequest) as caught:
        await client(answer).send(Read())
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 500
    assert "<" not in str(caught.value)
    assert caught.value.code in {None, 40410, 1000}


async def test_of_a_list_of_a_thousand_errors_the_first_twenty_are_told() -> None:
    body = {"errors": [{str(row): "no"} for row in range(1000)]}
    with pytest.raises(InvalidRequest) as caught:
        await client(lambda _request: httpx.Response(400, json=body)).send(Read())
    assert str(caught.value).endswith("; 18: no; 19: no")


@pytest.mark.parametrize(("depth", "shown"), [(10, True), (300, False)])
async def test_words_that_are_nested_deeper_than_any_are_left_out(depth: int, shown: bool) -> None:
    body = b'{"message":' + b'{"a":' * depth + b'"words"' + b"}" * depth + b"}"
    with pytest.raises(InvalidRequest) as caught:
        await client(lambda _request: httpx.Response(400, content=body)).send(Read())
    assert ("a.a.a" in str(caught.value)) is shown


async def test_a_credential_that_the_service_quotes_is_in_no_message_not_even_half_of_it() -> None:
    key = "quoted-test-key-0123456789abcdef"
    hide(key)
    for padding in range(MAX_TEXT - len(key) - 10, MAX_TEXT + 5):
        text = f"{'x' * padding} {key}"
        for answer in (
            httpx.Response(400, json={"message": text}),
            httpx.Response(301, headers={"location": text}),
        ):
            with pytest.raises(AgentError) as caught:
                await client(lambda request, answer=answer: answer).send(Read())
            assert "quoted-test-key" not in str(caught.value)


@pytest.mark.parametrize("status", [302, 307, 511])
async def test_a_network_that_asks_for_a_log_in_is_told_with_it(status: int) -> None:
    page = httpx.Response(status, headers={"location": "http://portal.example/"})
    with pytest.raises(AgentError) as caught:
        await client(lambda _request: page).send(Read(), retries=NO_RETRY)
    assert "log-in" in caught.value.hint
    assert "cellagent config show hosts" in caught.value.hint


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "cellagent config show hosts"),
        (404, "cellagent config show hosts"),
        (418, "cellagent config show hosts"),
        (500, "try again later"),
        (501, "try again later"),
        (999, "try again later"),
    ],
)
async def test_a_refusal_without_a_word_has_a_way_out_all_the_same(status: int, words: str) -> None:
    with pytest.raises(AgentError) as caught:
        await client(lambda _request: httpx.Response(status)).send(Read(), retries=NO_RETRY)
    assert words in caught.value.hint


async def test_the_wait_that_a_silent_service_asks_for_is_not_hidden_by_another_hint() -> None:
    later = httpx.Response(503, headers={"retry-after": "40"})
    with pytest.raises(ServerTrouble) as caught:
        await client(lambda _request: later).send(Read(), retries=NO_RETRY)
    assert (caught.value.hint, caught.value.retry_after_s) == ("", 40.0)


@pytest.mark.parametrize(
    ("service_time", "words"), [("03:00:00", "245 s ahead of"), ("03:08:10", "245 s behind")]
)
async def test_clock_skew_is_named_when_a_credential_is_refused(
    service_time: str, words: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(401, headers={"Date": f"Fri, 02 Jan 2026 {service_time} GMT"})

    with pytest.raises(Unauthorized) as caught:
        await client(answer).send(Read())
    assert f"this machine's clock is {words} the service's" in caught.value.hint
    assert "account page" in caught.value.hint
