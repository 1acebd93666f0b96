"""A certificate that no client should take: self-signed, for another name, over since long."""

from __future__ import annotations

import os
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agent.standin.faults import meets_wrong_certificate

if TYPE_CHECKING:
    from agent.standin.state import Cloud


def server_context(pem: bytes) -> ssl.SSLContext:
    """Return the settings of a server with this private key and certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The library reads a key from a file only; this one is gone before anybody connects.
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
    finally:
        Path(path).unlink()
    return context


OTHER_HOST = "elsewhere.invalid"


def next_context(cloud: Cloud) -> ssl.SSLContext | None:
    """Return the settings with which the next connection is met; None where it is left alone."""
    if not meets_wrong_certificate(cloud):
        return None
    found: ssl.SSLContext | None = cloud.rooms.get("wrong certificate")
    if found is None:
        found = cloud.rooms["wrong certificate"] = server_context(make_pem())
    return found


def make_pem() -> bytes:
    """Return a fresh private key and its certificate, as PEM in one."""
    from cryptography import x509  # start-up does without it
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, OTHER_HOST)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2021, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(OTHER_HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)
