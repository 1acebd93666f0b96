"""HTTP connections: proxy, TLS, deadlines, size limits, by httpx.

It knows no credential: headers are arguments, for one request only. It follows no redirect but says
where one leads, keeps no cookie, reads no environment.
"""

import asyncio
import os
import shlex
import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpcore

from agent import __version__, errors
from agent.call import Response, content_length
from agent.config.urls import DEFAULT_PORTS, checked_url
from agent.files.private_files import read_plain
from agent.http.connection_errors import SLOW, own_errors
from agent.http.library import httpx

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses that name another place in `location`."""


def same_origin(first: str, second: str) -> bool:
    """Return whether scheme, host and port agree: else no secret is sent."""
    return _origin(first) == _origin(second)


def next_url(url: str, location: str) -> str:
    """Return the target of a redirect from `url` to `location`.

    Raises BadAnswer if it is no URL, or not encrypted although `url` is.
    """
    try:
        target = urljoin(url, location)
        checked_url(target, "redirect")
    except (errors.ConfigError, ValueError) as error:
        raise errors.BadAnswer(f"a redirect that cannot be followed: {error}") from error
    if url.startswith("https:") and not target.startswith("https:"):
        raise errors.BadAnswer("a redirect from https to http is not followed")
    return target


def _place(url: str) -> str:
    """Return host and port, as messages name them."""
    _, host, port = _origin(url)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    return parts.scheme, host, parts.port or DEFAULT_PORTS.get(parts.scheme, 0)


USER_AGENT = f"cellagent/{__version__}"
_READ_BYTES = 256 * 1024  # what asyncio reads at once


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The time limits of one exchange, in seconds."""

    connect_s: float = 10.0
    read_s: float = 30.0
    """The longest silence between two pieces of the answer."""
    whole_s: float = 60.0
    """From the first byte sent to the last byte received; it also ends a slow drip. The time to
    send the body, at SLOWEST_BYTES_PER_S, is added."""


SLOWEST_BYTES_PER_S = 4096
"""A request that goes out more slowly than this is given up."""


class StreamedResponse:
    """An answer whose body has not been read yet."""

    def __init__(self, response: httpx.Response, place: str, proxy: str = "") -> None:
        self.status = response.status_code
        self.headers: dict[str, str] = {k.lower(): v for k, v in response.headers.items()}
        self._response = response
        self.place, self._proxy = place, proxy

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it came, undecoded. Raises Unreachable, DeadlineExceeded."""
        with own_errors(self.place, self._proxy, answers=True):
            async for chunk in self._response.aiter_raw():
                yield chunk

    async def close(self) -> None:
        """Give the connection back, or close it where the body was not read to its end."""
        await self._response.aclose()


class HttpTransport:
    """A pool of connections that every client of the process may share; close it once."""

    def __init__(
        self,
        *,
        ca_file: str = "",
        proxy: str = "",
        deadlines: Deadlines | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.deadlines = deadlines or Deadlines()
        self._ca_file = os.path.expanduser(ca_file)  # noqa: PTH111 - "" stays ""
        self._proxy = proxy
        self._proxy_by_tls = proxy.startswith("https:")
        way = "https://" if self._proxy_by_tls else ""
        self._proxy_place = way + _place(proxy) if proxy else ""
        self._given = transport
        self._transports: dict[tuple[bool, str], httpx.AsyncBaseTransport] = {}

    @property
    def by_proxy(self) -> bool:
        """Whether what is encrypted goes by a proxy, which resolves names itself."""
        return bool(self._proxy)

    def require_trust(self) -> None:
        """Raise ConfigError if the CA file cannot be used."""
        if self._ca_file:
            tls_context(self._ca_file)

    async def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes | None = None,
        max_bytes: int,
        addresses: Sequence[str] = ("",),
    ) -> Response:
        """Send one request and return its answer, whatever its status; `addresses` as for `open`.

        Raises Unreachable, DeadlineExceeded, BadAnswer (more than `max_bytes`), ConfigError.
        """
        deadline_s = self.deadlines.whole_s + len(content or b"") / SLOWEST_BYTES_PER_S
        try:
            async with (
                asyncio.timeout(deadline_s),
                self.open(
                    method, url, headers=headers, content=content, addresses=addresses
                ) as stream,
            ):
                body = await _read(stream, max_bytes)
        except TimeoutError as error:
            raise errors.DeadlineExceeded(
                f"{_place(url)}: no whole answer within {deadline_s:.3g} s", hint=SLOW
            ) from error
        return Response(stream.status, stream.headers, body)

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | AsyncIterable[bytes] | None = None,
        addresses: Sequence[str] = ("",),
    ) -> AsyncIterator[StreamedResponse]:
        """Send one request and yield its answer while the body is still coming.

        For images and large files: the caller bounds size and whole time, and sees redirects as
        they are. `addresses` are the IP addresses to connect to, already checked by the caller, the
        next where one takes no connection; the name in `url` is still what the certificate must be
        for.
        """
        checked_url(url, "URL")
        given = {"user-agent": USER_AGENT, "accept-encoding": "identity", **(headers or {})}
        for address in addresses:
            try:
                stream = await self._sent(method, url, given, content, address)
                break
            except errors.Unreachable as error:
                is_closed = not error.sent and not isinstance(error, errors.Untrusted)
                if not is_closed or address == addresses[-1]:
                    raise
        try:
            yield stream
        finally:
            # Closing reads nothing more, so it needs no deadline of its own.
            await stream.close()

    async def _sent(
        self,
        method: str,
        url: str,
        given: dict[str, str],
        content: bytes | AsyncIterable[bytes] | None,
        address: str,
    ) -> StreamedResponse:
        """Send one request, to `address` where there is one, and return the beginning answer."""
        limits = self.deadlines
        silence = dict.fromkeys(("read", "write"), limits.read_s)
        extensions: dict[str, object] = {
            "timeout": {**silence, "connect": limits.connect_s, "pool": limits.connect_s}
        }
        parts = urlsplit(url)
        name, encrypted = parts.hostname or "", parts.scheme == "https"
        place = _place(url) + (f" ({address})" if address else "")
        proxy = self._proxy_place if encrypted else ""
        with own_errors(place, proxy):
            target = httpx.URL(url)
            if address:
                extensions["sni_hostname"] = target.host
                given["host"] = target.netloc.decode("ascii")
                target = target.copy_with(host=address)
            request = httpx.Request(
                method, target, headers=given, content=content, extensions=extensions
            )
            # Connections to a given address are kept apart by name: one that was verified for
            # another name must not be used again.
            transport = self._opened(encrypted, name if address else "")
            response = await transport.handle_async_request(request)
        return StreamedResponse(response, place, proxy)

    async def close(self) -> None:
        """Close the connections; the transport opens anew when it is used again."""
        transports, self._transports = list(self._transports.values()), {}
        for transport in transports:
            await transport.aclose()

    def _opened(self, encrypted: bool, name: str) -> httpx.AsyncBaseTransport:
        # Not httpx.AsyncClient: it reads the Location of every redirect, keeps cookies, and takes
        # twice the time.
        if (encrypted, name) not in self._transports:
            # Cut into the 64 KiB that it asks for, an image takes a third more of the processor.
            httpcore.AsyncHTTP11Connection.READ_NUM_BYTES = _READ_BYTES
            httpcore.AsyncHTTP11Connection._response_closed = _keep_if_clean  # type: ignore[method-assign,assignment] # it has no other seam
            # What is not encrypted stays on this machine: no proxy may read it, and it needs no CA.
            # Should it be encrypted one day, nobody is trusted.
            nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trust = tls_context(self._ca_file) if encrypted else nobody
            proxy = self._proxy_to_use() if encrypted else None
            self._transports[encrypted, name] = self._given or httpx.AsyncHTTPTransport(
                verify=trust, proxy=proxy
            )
        return self._transports[encrypted, name]

    def _proxy_to_use(self) -> httpx.Proxy | None:
        """Return the proxy; one that is spoken to by TLS has to be trusted as a service has."""
        trust = tls_context(self._ca_file) if self._proxy_by_tls else None
        return httpx.Proxy(self._proxy, ssl_context=trust) if self._proxy else None


_keep = httpcore.AsyncHTTP11Connection._response_closed


async def _keep_if_clean(connection: httpcore.AsyncHTTP11Connection) -> None:
    """Keep a connection whose answer has ended, unless more than the answer came on it.

    What is left over would be taken for the answer to the next request. httpcore looks at the
    socket only, not at what was read from it; a stream or a backend of our own, its public seams,
    would not know where in the bytes an answer ends. The tests of what is left over fail with a
    version that does not call this.
    """
    tls = connection._network_stream.get_extra_info("ssl_object")
    if connection._h11_state.trailing_data[0] or (tls is not None and _has_more(tls)):
        await connection.aclose()
    else:
        await _keep(connection)


def _has_more(tls: ssl.SSLObject) -> bool:
    """Return whether another record has come, or the end."""
    try:
        tls.read(1)
    except ssl.SSLError as error:
        return not isinstance(error, ssl.SSLWantReadError)
    return True


def tls_context(ca_file: str = "") -> ssl.SSLContext:
    """Return the TLS settings of this process, made once per content: reading CAs costs 30 ms.

    Without a CA file the system's own store is trusted, and certifi's where there is none.
    SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE are not read. Raises ConfigError.
    """
    # A file whose content has changed is another: what is not in it any more is not trusted.
    return _made_context(ca_file, read_plain(Path(ca_file), "hosts.ca_file") if ca_file else b"")


@lru_cache(maxsize=4)
def _made_context(ca_file: str, content: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Debian's Python leaves this to the system's settings, which may allow what is broken.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    if ca_file:
        try:
            # Outside of its certificates a file may say in any language what they are.
            context.load_verify_locations(cadata=content.decode("ascii", "ignore"))
        except (ssl.SSLError, ValueError) as error:  # ValueError: it is empty
            files = f"-in {shlex.quote(ca_file)} -out {shlex.quote(f'{ca_file}.pem')}"
            raise errors.ConfigError(
                f"hosts.ca_file: {ca_file} is no whole file of certificates in PEM",
                hint=f"`openssl x509 -inform DER {files}` makes PEM of one in DER",
            ) from error
        return context
    paths = ssl.get_default_verify_paths()
    # The openssl_ names are what was compiled in; the others may come from the environment.
    cafile, capath = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    if cafile.is_file():
        context.load_verify_locations(cafile=cafile)
    elif capath.is_dir() and any(capath.iterdir()):
        context.load_verify_locations(capath=capath)
    else:
        import certifi

        context.load_verify_locations(cafile=certifi.where())
    return context


async def _read(stream: StreamedResponse, max_bytes: int) -> bytes:
    """Return the whole body, decoded if it was sent compressed all the same."""
    answer = f"the answer of {stream.place}"
    declared = content_length(stream.headers)
    if declared is not None and declared > max_bytes:
        raise errors.BadAnswer(f"{answer} has {declared} bytes; at most {max_bytes} are read")
    encoding = stream.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity", "gzip", "deflate"}:
        raise errors.BadAnswer(f"{answer} is encoded as {encoding[:40]!r}, which was not asked for")
    inflate = zlib.decompressobj(47) if encoding in {"gzip", "deflate"} else None
    body, came = bytearray(), False
    async for chunk in stream.chunks():
        came = True
        try:
            # One byte more than allowed is enough to know, and bounds a bomb.
            missing = max_bytes + 1 - len(body)
            body += inflate.decompress(chunk, missing) if inflate else chunk
        except zlib.error as error:
            raise errors.BadAnswer(f"{answer} is compressed, and damaged") from error
        if len(body) > max_bytes:
            raise errors.BadAnswer(f"{answer} is larger than {max_bytes} bytes")
    if inflate and came and not inflate.eof:  # an answer without a body has a coding, too
        raise errors.BadAnswer(f"{answer} is compressed, and cut short")
    return bytes(body)
