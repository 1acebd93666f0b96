"""A CONNECT proxy that ends TLS for the public hosts and forwards to the stand-in.

For third-party tools that know no other base URL: HTTPS_PROXY points at it, and its CA file is
what they trust. A host that it does not know is refused: nothing reaches the internet. The CA
is valid for one day, and its key is in memory only.
"""

import asyncio
import contextlib
import datetime as dt
import ssl
from collections.abc import AsyncIterator, Iterable
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from agent.standin.certificates import certificate_builder, common_name, new_key, signed_pem
from agent.standin.core.connections import cancel_and_wait, server_context
from agent.standin.core.operation import Host
from agent.standin.faults import has_wrong_certificate
from agent.standin.jwt import private_pem
from agent.standin.state import Cloud

PUBLIC_HOSTS = {
    "api.nrfcloud.com": Host.DEVICE_CLOUD,
    "api.provisioning.nrfcloud.com": Host.PROVISIONING,
    "firmware.nrfcloud.com": Host.DOWNLOADS,
    "bundles.nrfcloud.com": Host.DOWNLOADS,
    "pgps.nrfcloud.com": Host.DOWNLOADS,
    "api.memfault.com": Host.API,
    "device.memfault.com": Host.API,
    "device-nrf.memfault.com": Host.API,
    "chunks.memfault.com": Host.CHUNKS,
    "chunks-nrf.memfault.com": Host.CHUNKS,
    "ingress.memfault.com": Host.INGRESS,
    "files.memfault.com": Host.FILES,
}
"""Names of the public profile's services, and the host of ours that answers for each."""

_HEAD_LIMIT = 16 * 1024
"""Bytes of the CONNECT request."""
_HEAD_S = 10.0
_END_S = 5.0
"""Seconds for the CONNECT request, and again for the handshake."""
_IDLE_S = 120.0
"""Seconds without a byte in one direction, after which a tunnel ends."""
_MAX_TUNNELS = 64
"""Tunnels at a time; each takes three descriptors."""
_VALIDITY = dt.timedelta(days=1)


class CertificateAuthority:
    """A CA that is valid for one day; `pem` is its certificate."""

    def __init__(self) -> None:
        self._key = new_key()
        self._name = common_name("cellagent stand-in CA, test only")
        builder = (
            _of_a_day(self._name, self._key.public_key(), self._name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
        )
        self.pem = signed_pem(builder, self._key)
        self.context = cache(self._context)

    def write(self, path: Path) -> None:
        """Write the certificate, for clients that are to trust this CA, over a former one alone.

        Raises ValueError for a file that holds anything else, OSError.
        """
        if path.is_file() and not self._is_former(path.read_bytes()):
            raise ValueError(f"{path} exists already, and is no stand-in's CA: name another file")
        path.write_bytes(self.pem)

    def _is_former(self, pem: bytes) -> bool:
        try:
            return x509.load_pem_x509_certificate(pem).subject == self._name
        except ValueError:
            return False

    def _context(self, host: str) -> ssl.SSLContext:
        """Return the TLS settings of a server called `host`."""
        key = new_key()
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _of_a_day(common_name(host), key.public_key(), self._name)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(issuer, critical=False)
        )
        return server_context(signed_pem(builder, self._key) + private_pem(key).encode())


@contextlib.asynccontextmanager
async def connect_proxy(
    cloud: Cloud, port: int, ca_file: Path, extra_hosts: Iterable[str] = ()
) -> AsyncIterator[int]:
    """Serve the proxy on loopback until the block ends; yield its port.

    `extra_hosts` are more names that the stand-in answers for, each NAME, of the device cloud, or
    NAME=HOST with a key of `urls`. Writes the CA's certificate to `ca_file`. Raises OSError,
    ValueError.
    """
    hosts = {**PUBLIC_HOSTS, **_extra_hosts(extra_hosts)}
    authority = CertificateAuthority()
    cloud.allowed_hosts |= set(hosts)
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(connections) >= _MAX_TUNNELS:
            writer.transport.abort()
            return
        connections.add(task)
        task.add_done_callback(connections.discard)
        try:
            await _serve_tunnel(cloud, hosts, authority, reader, writer)
        except (OSError, EOFError, ValueError):
            pass  # the client disconnected, or spoke no TLS: its own log says so
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_HEAD_LIMIT)
    try:
        authority.write(ca_file)  # not before: whoever has the port has its CA there, too
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await cancel_and_wait(*connections, within_s=_END_S)


async def _serve_tunnel(
    cloud: Cloud,
    hosts: dict[str, Host],
    authority: CertificateAuthority,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    name = await _asked_name(reader)
    if name is None or name not in hosts:
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        return
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await writer.drain()
    if not has_wrong_certificate(cloud):  # else our own port speaks TLS, with that certificate
        await writer.start_tls(authority.context(name), ssl_handshake_timeout=_HEAD_S)
    target = urlsplit(cloud.urls[hosts[name]])
    inward, outward = await asyncio.open_connection(target.hostname, target.port)
    tasks = [
        asyncio.create_task(_pump(reader, outward)),
        asyncio.create_task(_pump(inward, writer)),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        outward.close()
        await cancel_and_wait(*tasks, within_s=_END_S)


async def _asked_name(reader: asyncio.StreamReader) -> str | None:
    """Return the host name of a CONNECT request, None for another method."""
    async with asyncio.timeout(_HEAD_S):
        head = await reader.readuntil(b"\r\n\r\n")
    method, _, rest = head.decode("latin-1").partition(" ")
    return rest.partition(" ")[0].rpartition(":")[0].lower() if method == "CONNECT" else None


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy bytes until the source ends. Raises TimeoutError when it is idle."""
    while True:
        async with asyncio.timeout(_IDLE_S):
            data = await source.read(65536)
            if not data:
                return
            sink.write(data)
            await sink.drain()


def _extra_hosts(names: Iterable[str]) -> dict[str, Host]:
    hosts = {}
    for text in names:
        name, _, host = text.partition("=")
        try:
            hosts[name.lower()] = Host(host or Host.DEVICE_CLOUD)
        except ValueError as error:
            raise ValueError(f"{text}: the hosts are {', '.join(Host)}") from error
    return hosts


def _of_a_day(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    begin, end = now - dt.timedelta(minutes=5), now + _VALIDITY
    return certificate_builder(subject, key, issuer, begin, end).add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key), critical=False
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        **dict.fromkeys((*others, "encipher_only", "decipher_only"), False),
    )
