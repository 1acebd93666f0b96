"""The transport against servers that misbehave on a real socket; where a redirect leads."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import (
    AgentError,
    BadAnswer,
    ConfigError,
    DeadlineExceeded,
    NothingListens,
    Unreachable,
    Untrusted,
)
from agent.http import Deadlines, HttpTransport, tls_context
from agent.http import transport as transport_module
from agent.http.transport import SLOWEST_BYTES_PER_S, next_url, same_origin

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LIMIT = 64 * 1024


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve on loopback; every connection is closed at the end."""
    writers: list[asyncio.StreamWriter] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handler(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        server.close()
        for writer in writers:
            writer.close()


def answering(raw: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return handler


async def get(transport: HttpTransport, url: str, max_bytes: int = LIMIT) -> bytes:
    return (await transport.exchange("GET", url, headers={}, max_bytes=max_bytes)).content


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    made = HttpTransport(deadlines=Deadlines(connect_s=5, read_s=5, whole_s=10))
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", Unreachable),
        (b"nonsense\r\n\r\n", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", Unreachable),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", BadAnswer),
        (
            b"HTTP/1.0 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}")[:-1],
            BadAnswer,
        ),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", Unreachable),
    ],
    ids=["nothing", "no-http", "short", "bad-chunk", "negative", "huge", "gzip", "cut", "header"],
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


async def test_what_cannot_be_reached_is_named(transport: HttpTransport) -> None:
    with pytest.raises(NothingListens, match=r"^127\.0\.0\.1:1: nothing listens there$") as refused:
        await get(transport, "http://127.0.0.1:1")
    assert refused.value.sent is False
    with pytest.raises(Unreachable, match="cannot be resolved") as unknown:
        await get(transport, "https://no-such-host.invalid")
    assert unknown.value.sent is False
    with pytest.raises(ConfigError, match="not encrypted"):
        await get(transport, "http://plain.example")


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
        await wary.close()


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "plain http"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "TLS 1.2 or later"),  # the alert handshake_failure
    ],
)
async def test_what_speaks_no_tls_or_an_old_one_is_named(
    transport: HttpTransport, answer: bytes, hint: str
) -> None:
    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        with pytest.raises(Unreachable, match="TLS failed") as caught:
            await get(transport, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("days", "says", "hint"),
    [((-9, -1), "has expired", "clock says"), ((1, 9), "is not valid yet", "clock says")],
)
async def test_a_certificate_out_of_its_time_asks_about_the_clock(
    tmp_path: Path, days: tuple[int, int], says: str, hint: str
) -> None:
    ca_file, context = own_ca(tmp_path, days)
    async with serving(answering(OK), context) as url:
        trusting = HttpTransport(ca_file=str(ca_file))
        with pytest.raises(Untrusted, match=says) as caught:
            await get(trusting, url)
        assert hint in caught.value.hint
        await trusting.close()


async def test_a_certificate_that_signs_itself_is_told_from_one_of_an_authority(
    tmp_path: Path, transport: HttpTransport
) -> None:
    _, context = own_ca(tmp_path, signs_itself=True)
    async with serving(answering(OK), context) as url:
        with pytest.raises(Untrusted, match="is signed by itself"):
            await get(transport, url)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_server_that_wants_a_certificate_is_told_as_that(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    ca_file, context = own_ca(tmp_path)
    context.load_verify_locations(ca_file)
    context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, version
    async with serving(answering(OK), context) as url:
        trusting = HttpTransport(ca_file=str(ca_file))
        with pytest.raises(Unreachable) as caught:
            await get(trusting, url)
        await trusting.close()
    # Whether its alert comes before the reset is up to the kernel.
    assert "wants a certificate of this machine" in f"{caught.value}; {caught.value.hint}"


async def test_http_where_tls_is_spoken_is_told_as_that(
    tmp_path: Path, transport: HttpTransport
) -> None:
    async with serving(answering(OK), own_ca(tmp_path)[1]) as url:
        with pytest.raises(Unreachable) as caught:
            await get(transport, url.replace("https", "http"))
    assert "TLS (https://)" in caught.value.hint
    assert "ReadError" not in str(caught.value)
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")) as url:
        with pytest.raises(Unreachable) as caught:
            await get(transport, url)
    assert caught.value.hint == "if it breaks each time: a firewall on the way ends it"


def own_ca(
    folder: Path, days: tuple[int, int] = (-1, 1), *, signs_itself: bool = False
) -> tuple[Path, ssl.SSLContext]:
    """Make a CA and a server certificate for 127.0.0.1; both keys are of this test alone."""
    now = datetime.now(UTC)
    issuer = int(signs_itself)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in ("test CA", "server")]

    def build(subject: int) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(names[subject])
            .issuer_name(names[issuer if subject else 0])
            .public_key(keys[subject].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + timedelta(days=days[0] if subject else -9))
            .not_valid_after(now + timedelta(days=days[1] if subject else 9))
        )

    ca = (
        build(0)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(keys[0], hashes.SHA256())
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    server = build(1).add_extension(address, False).sign(keys[issuer], hashes.SHA256())
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    (folder / "server.pem").write_bytes(
        server.public_bytes(pem)
        + keys[1].private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return folder / "ca.pem", context


@pytest.mark.contract("D1.1", "C2")
async def test_tls_is_verified_and_an_own_ca_file_is_possible(tmp_path: Path) -> None:
    ca_file, context = own_ca(tmp_path)
    ok = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with serving(ok, context) as url:
        trusting, wary = HttpTransport(ca_file=str(ca_file)), HttpTransport()
        assert await get(trusting, url) == b"ok"
        with pytest.raises(Untrusted, match="authority that this machine does not trust") as caught:
            await get(wary, url)
        assert "hosts.ca_file" in caught.value.hint
        assert caught.value.sent is False
        # The name is checked as well: the certificate is for the address alone.
        with pytest.raises(Unreachable, match="certificate is for another name"):
            await get(trusting, url.replace("127.0.0.1", "localhost"))
        # The address that was checked is connected to, under the name of the URL.
        port = url.rpartition(":")[2]
        named = f"https://files.example:{port}"
        with pytest.raises(Unreachable, match="certificate is for another name"):
            async with trusting.open("GET", named, addresses=["127.0.0.1"]):
                pass
        await trusting.close()
        await wary.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LEFT = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nleft"


def keeping(*pieces: bytes, connections: list[int]) -> Handler:
    """Answer each request with these pieces, written one by one, and keep the connection."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        while True:
            connections[-1] += 1
            for piece in pieces:
                writer.write(piece)
            await reader.readuntil(b"\r\n\r\n")

    return handler


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


@pytest.mark.contract("D1.1", "C2")
async def test_a_connection_that_was_verified_for_one_name_is_not_used_for_another(
    tmp_path: Path,
) -> None:
    ca_file, context = own_ca(tmp_path)
    connections: list[int] = []
    async with serving(keeping(OK, connections=connections), context) as url:
        transport = HttpTransport(ca_file=str(ca_file))
        for _ in range(2):
            async with transport.open("GET", url, addresses=["127.0.0.1"]) as stream:
                assert b"".join([chunk async for chunk in stream.chunks()]) == b"ok"
        named = url.replace("127.0.0.1", "files.example")
        with pytest.raises(Untrusted, match="certificate is for another name"):
            # Nor is the next address tried, where nothing listens.
            async with transport.open("GET", named, addresses=["127.0.0.1", "::1"]):
                pass
        await transport.close()
    assert connections == [2]


def test_tls_settings_are_made_once_and_the_environment_does_not_change_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tls_context() is tls_context("")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "evil.pem"))
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys.log"))
    transport_module._made_context.cache_clear()
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert not context.keylog_filename
    with pytest.raises(ConfigError, match=r"hosts\.ca_file"):
        tls_context(str(tmp_path / "missing.pem"))


async def test_where_nothing_is_encrypted_no_authority_is_read(transport: HttpTransport) -> None:
    transport_module._made_context.cache_clear()
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as url:
        assert await get(transport, url) == b"ok"
    assert transport_module._made_context.cache_info().currsize == 0


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
