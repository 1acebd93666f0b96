"""A server that answers with bytes as they are, over TLS by a CA of its own if it is told to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from agent.http import HttpTransport

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LIMIT = 64 * 1024
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


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
