"""The transport against servers that misbehave on a real socket; where a redirect leads."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import os
import socket
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import (
    AgentError,
    BadAnswer,
    ConfigError,
    DeadlineExceeded,
    NothingListens,
    Unreachable,
    UsageError,
)
from agent.http import Deadlines, HttpTransport
from agent.http.transport import SLOWEST_BYTES_PER_S, next_url, same_origin
from tests.support.cloud.byte_server import LIMIT, OK, answering, get, keeping, own_ca, serving

LEFT = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nleft"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", Unreachable),
        (b"nonsense\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", Unreachable),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", BadAnswer),
        (
            b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}")[:-1],
            BadAnswer,
        ),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", BadAnswer),
    ],
    ids=[
        "nothing",
        "no-http",
        "short",
        "bad-chunk",
        "short-chunk",
        "negative",
        "huge",
        "gzip",
        "cut",
        "header",
    ],
)
async def test_a_broken_answer_is_an_error_and_the_next_call_works(
    transport: HttpTransport, raw: bytes, kind: type[AgentError]
) -> None:
    async with serving(answering(raw)) as url:
        with pytest.raises(kind):
            await get(transport, url)
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as url:
        assert await get(transport, url) == b"ok"


async def test_an_endless_body_is_cut_at_its_cap(transport: HttpTransport) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    async with serving(endless) as url:
        with pytest.raises(BadAnswer, match="larger than 65536 bytes"):
            await get(transport, url)
    assert sent < 64 * 1024 * 1024
    async with serving(answering(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * LIMIT)) as url:
        assert len(await get(transport, url)) == LIMIT


async def test_a_compressed_bomb_is_cut_at_its_cap(transport: HttpTransport) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    async with serving(answering(head + bomb)) as url:
        with pytest.raises(BadAnswer, match="larger than 65536 bytes"):
            await get(transport, url)
    small = gzip.compress(b'{"a":1}')
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(small)
    async with serving(answering(head + small)) as url:
        assert await get(transport, url) == b'{"a":1}'


async def test_a_slow_drip_ends_at_the_whole_deadline_and_silence_at_the_read_deadline() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\nx")
        await writer.drain()
        await never.wait()

    never = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()

    slow = HttpTransport(deadlines=Deadlines(connect_s=5, read_s=30, whole_s=0.2))
    async with serving(drip) as url:
        with pytest.raises(
            DeadlineExceeded, match=r"^127\.0\.0\.1:\d+: no whole answer within 0\.2 s"
        ) as late:
            await get(slow, url)
        assert "try again later" in late.value.hint
        # What is sent has its own time, however slow the way is.
        body = bytes(SLOWEST_BYTES_PER_S // 5)
        with pytest.raises(DeadlineExceeded, match=r"no whole answer within 0\.4 s"):
            await slow.exchange("POST", url, headers={}, content=body, max_bytes=LIMIT)
        never.set()
    await slow.close()
    never.clear()
    impatient = HttpTransport(deadlines=Deadlines(connect_s=5, read_s=0.1, whole_s=30))
    async with serving(silent) as url:
        with pytest.raises(DeadlineExceeded, match="fell silent") as silence:
            await get(impatient, url)
        assert "try again later" in silence.value.hint
        never.set()
    await impatient.close()


async def test_what_cannot_be_reached_is_named(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NothingListens, match=r"^127\.0\.0\.1:1: nothing listens there$") as refused:
        await get(transport, "http://127.0.0.1:1")
    assert refused.value.sent is False
    with pytest.raises(Unreachable, match=r"^255\.255\.255\.255:443: ") as nowhere:
        await get(transport, "https://255.255.255.255")
    ways = (errno.ENETUNREACH, errno.EACCES, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL)
    assert str(nowhere.value).partition(": ")[2] in map(os.strerror, ways)
    assert nowhere.value.sent is False
    for number, kind in ((socket.EAI_NONAME, NothingListens), (socket.EAI_AGAIN, Unreachable)):
        with monkeypatch.context() as resolver:
            resolver.setattr(socket, "getaddrinfo", Mock(side_effect=socket.gaierror(number, "")))
            with pytest.raises(Unreachable, match="cannot be resolved") as unknown:
                await get(transport, "https://no-such-host.invalid")
        assert (type(unknown.value), unknown.value.sent) == (kind, False)
    for url, says in (
        ("http://plain.example", "not encrypted"),
        (f"http://127.0.0.1/{'x' * 70_000}", "cannot use the URL of 127"),
    ):
        with pytest.raises(ConfigError, match=says):
            await get(transport, url)


async def test_a_name_that_idna_forbids_is_no_valid_http(transport: HttpTransport) -> None:
    with pytest.raises(UsageError, match="is no valid HTTP"):
        await get(transport, "https://xn--zzzzzzz-.example")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses")
async def test_a_connection_that_nobody_takes_is_told_with_the_way_to_it() -> None:
    with contextlib.ExitStack() as opened:
        full = opened.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):  # one waits to be taken, the others to wait
            waits = opened.enter_context(socket.socket())
            waits.setblocking(False)
            waits.connect_ex(full.getsockname())
        place = f"127.0.0.1:{full.getsockname()[1]}"
        impatient = Deadlines(connect_s=0.05)
        for proxy, url, way, hint in (
            ("", f"http://{place}", place, "a name server that does not answer"),
            (f"http://{place}", "https://api.example", f"api.example:443 by the proxy {place}",
             "hosts.proxy of the profile"),
        ):  # fmt: skip
            transport = HttpTransport(proxy=proxy, deadlines=impatient)
            with pytest.raises(Unreachable) as late:
                await get(transport, url)
            assert str(late.value) == f"{way} did not answer the connection in time"
            assert hint in late.value.hint
            assert late.value.sent is False
            await transport.close()


async def test_more_calls_at_once_than_connections_wait_for_one_and_no_longer() -> None:
    never, waiting, taken = asyncio.Event(), asyncio.Event(), []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)
        if len(taken) == 100:
            waiting.set()
        await never.wait()

    crowded = HttpTransport(deadlines=Deadlines(connect_s=20.0))
    async with serving(silent) as url:
        calls = [asyncio.ensure_future(get(crowded, url)) for _ in range(100)]
        await asyncio.wait_for(waiting.wait(), 20)
        crowded.deadlines = Deadlines(connect_s=0.05)
        with pytest.raises(Unreachable, match=r"no free connection to 127\.0\.0\.1:") as none:
            await get(crowded, url)
        assert none.value.sent is False
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        never.set()
    await crowded.close()


async def test_cookies_are_not_kept_and_the_environment_is_not_asked(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    seen: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = b"HTTP/1.1 200 OK\r\nSet-Cookie: session=1\r\nContent-Length: 2\r\n\r\nok"
        writer.write(body)
        await writer.drain()
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(body)

    async with serving(handler) as url:
        assert await get(transport, url) == b"ok"
        assert await get(transport, url) == b"ok"
    assert b"cookie" not in seen[0].lower()


async def test_a_proxy_of_the_environment_is_named_where_the_way_without_it_fails(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:canary-word@proxy.example:3128")
    with pytest.raises(Unreachable, match="cannot be resolved") as unknown:
        await get(transport, "https://no-such-host.invalid")
    assert '`cellagent config set hosts.proxy "$HTTPS_PROXY"`' in unknown.value.hint
    assert "canary" not in unknown.value.hint


@pytest.mark.contract("D1.1")
async def test_what_is_not_encrypted_goes_by_no_proxy_which_would_read_the_key() -> None:
    asked: list[int] = []
    async with (
        serving(keeping(b"HTTP/1.1 502 No\r\n\r\n", connections=asked)) as proxy,
        serving(answering(OK)) as url,
    ):
        transport = HttpTransport(proxy=proxy)
        assert await get(transport, url) == b"ok"
        await transport.close()
    assert not asked
    dead = HttpTransport(proxy="http://127.0.0.1:2")
    with pytest.raises(NothingListens, match=r"^127\.0\.0\.1:1: nothing listens there$") as nobody:
        await get(dead, "http://127.0.0.1:1")
    assert "proxy" not in nobody.value.hint


async def test_a_proxy_is_named_where_it_is_what_fails() -> None:
    dead = HttpTransport(proxy="http://user:word@127.0.0.1:1")
    with pytest.raises(NothingListens) as refused:
        await get(dead, "https://api.example")
    assert str(refused.value) == (
        "the proxy 127.0.0.1:1: nothing listens there on the way to api.example:443"
    )
    assert "hosts.proxy" in refused.value.hint
    lost = HttpTransport(proxy="http://no-such-proxy.invalid:3128")
    with pytest.raises(
        Unreachable, match=r"the proxy no-such-proxy\.invalid:3128: the name cannot"
    ):
        await get(lost, "https://api.example")
    async with serving(answering(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")) as url:
        wary = HttpTransport(proxy=url)
        with pytest.raises(
            Unreachable, match=r"does not connect to api\.example:443: 407 Who"
        ) as unknown:
            await get(wary, "https://api.example")
        assert unknown.value.hint.startswith("it wants a user and a password, or others: `cellage")
        assert unknown.value.sent is False
        await wary.close()


async def test_an_answer_that_is_not_read_to_its_end_is_hung_up_on(
    transport: HttpTransport,
) -> None:
    gone = asyncio.Event()

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(LEFT[:-1])
        await reader.read()
        gone.set()

    async with serving(half) as url:
        async with transport.open("GET", url) as stream:
            assert stream.status == 200
        await asyncio.wait_for(gone.wait(), 20)


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    "pieces",
    [(OK + LEFT,), (OK, LEFT), (OK, b"left\r\n"), (OK + b"\r\n\r\n",), (OK + b"H",)],
    ids=["together", "apart", "no-http", "empty-lines", "a-byte"],
)
async def test_what_is_left_over_on_a_connection_is_never_the_next_answer(
    tmp_path: Path, pieces: tuple[bytes, ...], tls: bool
) -> None:
    ca_file, context = own_ca(tmp_path)
    connections: list[int] = []
    async with serving(keeping(*pieces, connections=connections), context if tls else None) as url:
        transport = HttpTransport(ca_file=str(ca_file))
        assert [await get(transport, url) for _ in range(3)] == [b"ok"] * 3
        await transport.close()
    assert connections == [1, 1, 1]


@pytest.mark.parametrize("tls", [False, True])
async def test_a_connection_with_nothing_left_over_is_kept(tmp_path: Path, tls: bool) -> None:
    ca_file, context = own_ca(tmp_path)
    connections: list[int] = []
    async with serving(keeping(OK, connections=connections), context if tls else None) as url:
        transport = HttpTransport(ca_file=str(ca_file))
        assert [await get(transport, url) for _ in range(3)] == [b"ok"] * 3
        await transport.close()
    assert connections == [3]


async def test_an_address_that_was_checked_is_the_one_that_is_connected_to(
    transport: HttpTransport,
) -> None:
    seen: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(b"called")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with serving(handler) as url:
        port = url.rpartition(":")[2]
        async with transport.open(
            "GET", f"http://localhost:{port}/x", addresses=["127.0.0.1"]
        ) as stream:
            assert b"".join([chunk async for chunk in stream.chunks()]) == b"ok"
    assert seen == [b"called"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "https://A.example:443/y?z", True),
        ("http://127.0.0.1", "http://127.0.0.1:80", True),
        ("https://a.example", "http://a.example", False),
        ("https://a.example", "https://a.example:8443", False),
        ("https://a.example", "https://b.a.example", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(one: str, other: str, same: bool):
    assert same_origin(one, other) is same


@pytest.mark.contract("D1.1")
def test_a_redirect_may_be_relative_and_never_leaves_https():
    assert next_url("https://a.example/b/c", "d?e") == "https://a.example/b/d?e"
    assert next_url("http://127.0.0.1:1/b", "https://a.example") == "https://a.example"
    for location in ("http://127.0.0.1/", "http://a.example/", "//[", "javascript:x"):
        with pytest.raises(BadAnswer):
            next_url("https://a.example/b", location)


@given(st.text(max_size=60))
def test_any_redirect_ends_at_https_or_is_refused(location: str):
    try:
        target = next_url("https://a.example/b", location)
    except BadAnswer:
        return
    assert target.startswith("https://")
