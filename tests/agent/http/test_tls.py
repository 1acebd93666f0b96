"""Whom the transport trusts over TLS, and how it tells why not, on a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import ssl
import subprocess
from pathlib import Path

import pytest

from agent.errors import ConfigError, Unreachable, Untrusted
from agent.http import HttpTransport, tls_context
from agent.http import transport as transport_module
from tests.support.cloud.byte_server import OK, answering, get, keeping, own_ca, serving

# RFC 4346, 7.4.1.3: a server's choice of TLS 1.1, with a cipher that every client once had.
_HELLO_1_1 = b"\x16\x03\x02\x00\x2a\x02\x00\x00\x26\x03\x02" + bytes(32) + b"\x00\x00\x2f\x00"


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Untrusted, "plain http"),
        # The alert protocol_version, and a hello of TLS 1.1: another try has the same end.
        (b"\x15\x03\x01\x00\x02\x02\x46", Untrusted, "TLS 1.2 or later is spoken here"),
        (_HELLO_1_1, Untrusted, "TLS 1.2 or later is spoken here"),
        # The alert handshake_failure.
        (b"\x15\x03\x01\x00\x02\x02\x28", Unreachable, "TLS 1.2 or later"),
    ],
)
async def test_what_speaks_no_tls_or_an_old_one_is_named(
    transport: HttpTransport, answer: bytes, kind: type[Unreachable], hint: str
) -> None:
    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        with pytest.raises(Unreachable, match="TLS failed") as caught:
            await get(transport, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert hint in caught.value.hint
    assert (type(caught.value), caught.value.sent) == (kind, False)


@pytest.mark.parametrize(
    ("days", "says", "hint"),
    [((-9, -1), "has expired", "must renew"), ((1, 9), "is not valid yet", "clock says")],
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


async def test_a_server_that_wants_a_certificate_and_does_not_reset_is_not_trusted(
    tmp_path: Path,
) -> None:
    ca_file, context = own_ca(tmp_path)
    context.load_verify_locations(ca_file)
    context.verify_mode = ssl.CERT_REQUIRED

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Shake hands and tell of the alert, but read on: no reset overtakes it."""
        arrives, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(arrives, goes, server_side=True)
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                arrives.write(piece)
                with contextlib.suppress(ssl.SSLError):
                    tls.do_handshake()
                writer.write(goes.read())
        writer.close()
        ended.set()

    ended = asyncio.Event()
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        trusting = HttpTransport(ca_file=str(ca_file))
        with pytest.raises(Untrusted, match=r"^127\.0\.0\.1:\d+ wants a certificate") as caught:
            await get(trusting, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await trusting.close()
        await asyncio.wait_for(ended.wait(), 20)
    assert "something else answers there" in caught.value.hint
    assert caught.value.sent is False


async def test_http_where_tls_is_spoken_is_told_as_that(
    tmp_path: Path, transport: HttpTransport
) -> None:
    async with serving(answering(OK), own_ca(tmp_path)[1]) as url:
        with pytest.raises(Unreachable) as caught:
            await get(transport, url.replace("https", "http"))
    assert "TLS (https://)" in caught.value.hint
    assert re.search(r"broke: \w", str(caught.value))
    assert "ReadError" not in str(caught.value)
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")) as url:
        with pytest.raises(Unreachable) as caught:
            await get(transport, url)
    assert caught.value.hint == "if it breaks each time: a firewall on the way ends it"


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


@pytest.mark.contract("D1.1")
def test_a_ca_file_whose_content_has_changed_is_read_again(tmp_path: Path) -> None:
    file, _ = own_ca(tmp_path)
    before = tls_context(str(file)).get_ca_certs(binary_form=True)
    (tmp_path / "new").mkdir()
    new, _ = own_ca(tmp_path / "new")
    file.write_bytes("# die neue für alle\n".encode() + new.read_bytes())
    after = tls_context(str(file)).get_ca_certs(binary_form=True)
    assert (len(after), after != before) == (1, True)


@pytest.mark.contract("D1.1")
def test_a_ca_file_that_cannot_be_used_is_told_with_the_way_out(tmp_path: Path) -> None:
    ca_file, _ = own_ca(tmp_path)
    der = tmp_path / "company ca.cer"
    der.write_bytes(ssl.PEM_cert_to_DER_cert(ca_file.read_text()))
    with pytest.raises(ConfigError, match=r"company ca\.cer is no whole file of cert") as no_pem:
        tls_context(str(der))
    # The way out leads to a file that can be used.
    command = no_pem.value.hint.split("`")[1]
    subprocess.run(shlex.split(command), check=True)
    assert len(tls_context(f"{der}.pem").get_ca_certs()) == 1
    with pytest.raises(ConfigError, match=r"cannot read .*none\.pem \(No such file") as missing:
        tls_context(str(tmp_path / "none.pem"))
    assert missing.value.hint == f"`ls {tmp_path}` shows what is there"
    with pytest.raises(ConfigError, match="is no plain file"):
        tls_context(str(tmp_path))


@pytest.mark.contract("D1.1")
async def test_a_proxy_that_speaks_tls_is_trusted_as_a_service_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca_file, context = own_ca(tmp_path)
    no_way = answering(b"HTTP/1.1 403 Not there\r\nContent-Length: 0\r\n\r\n")
    async with serving(no_way, context) as proxy:
        trusting = HttpTransport(ca_file=str(ca_file), proxy=proxy)
        with pytest.raises(Unreachable, match=r"does not connect to api\.example:443: 403"):
            await get(trusting, "https://api.example")
        # httpx reads this where a proxy is given without settings of its own.
        monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
        wary = HttpTransport(proxy=proxy)
        with pytest.raises(Untrusted) as caught:
            await get(wary, "https://api.example")
        assert str(caught.value).startswith(f"api.example:443 or the proxy {proxy}: its cert")
        assert "hosts.ca_file" in caught.value.hint
        await trusting.close()
        await wary.close()


@pytest.mark.contract("D1.1")
async def test_a_proxy_that_is_said_to_speak_tls_and_does_not_is_named() -> None:
    def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        mistaken = HttpTransport(proxy=f"https://{place}")
        with pytest.raises(Untrusted, match=f"or the proxy https://{place}: TLS failed"):
            await get(mistaken, "https://api.example")
        await mistaken.close()
