"""A service that answers again is noticed once; one that answers 503 has not come back."""

from __future__ import annotations

import httpx

from agent.call import Host
from agent.daemon.service_watch import ServiceWatch
from agent.http import HttpClient
from tests.support.cloud.answering_transport import answering_transport


async def test_a_service_is_back_once_each_time_that_it_answers_after_it_did_not():
    answers = {"a.invalid": 503, "b.invalid": 0}
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if not (status := answers[request.url.host]):
            raise httpx.ConnectError("refused")
        return httpx.Response(status)

    hosts = {Host.DEVICE_CLOUD: "https://a.invalid/x", Host.CHUNKS: "https://b.invalid"}
    client = HttpClient(answering_transport(answer), hosts)
    watch = ServiceWatch()
    assert not await watch.is_back(client)
    answers["b.invalid"] = 404
    assert [await watch.is_back(client) for _ in range(3)] == [True, False, False]
    answers["a.invalid"] = 401
    assert await watch.is_back(client)
    watch.forget()
    assert await watch.is_back(client), "it may have come back between the failure and this look"
    assert {str(each.url) for each in asked} == {"https://a.invalid/x/", "https://b.invalid/"}
    assert not any("authorization" in each.headers for each in asked)
