"""Host headers and requests of two meanings: only what is certainly for us is served."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.cloud.raw_requests import answers, connect
from tests.support.cloud.standin import StandIn


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("localhost", 200), ("LOCALHOST:80", 200), ("localhost.:80", 200), ("127.0.0.1", 200),
        ("127.0.0.1:65535", 200), ("[::1]", 200), ("[::1]:80", 200), ("[fe80::1%25lo]:80", 200),
        ("evil.example", 421), ("localhost.evil.example", 421), ("evil.example:80", 421), ("", 421),
        ("[::1]evil.example", 421), ("[::1", 421), ("127.0.0.1:80@evil.example", 421),
        ("localhost:80:evil.example", 421), ("localhost:x", 421), ("user@localhost", 421),
        ("0x7f.1", 421), ("127.0.0.1, evil.example", 421), ("localhost..", 421), ("..", 421),
    ],
)  # fmt: skip
async def test_a_host_header_is_ours_to_the_last_character_or_refused(
    standin: StandIn, given: str, status: int
) -> None:
    answer = await standin.client.get("/v1/status", headers={"Host": given})
    assert answer.status_code == status


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
        "Content-Length: 5, 6",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Host: evil.example",
    ],
)
async def test_a_request_whose_end_can_be_read_in_two_ways_hides_no_other(
    standin: StandIn, framing: str
) -> None:
    reader, writer = await connect(standin)
    head = f"POST /v1/fota-jobs HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n"
    hidden = "0\r\n\r\nGET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writer.write((head + hidden).encode())
    answer = await asyncio.wait_for(reader.read(), 60)  # to its end: the connection is closed
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")), answer
    assert answer.count(b"HTTP/1.1 ") == 1
    writer.close()
    assert await answers(standin)


async def test_a_name_that_is_not_ours_is_refused(standin: StandIn) -> None:
    answer = await standin.client.get("/v1/status", headers={"Host": "rebound.example"})
    assert answer.status_code == 421
    answer = await standin.client.get("/v1/status", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
