"""TLS settings of a server, and a certificate that no client should accept."""

from __future__ import annotations

import os
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.jwt import private_pem

_OTHER_HOST = "elsewhere.invalid"


def server_context(pem: bytes) -> ssl.SSLContext:
    """Return the TLS settings of a server; `pem` is its private key and its certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The library reads a key from a file only; the file is deleted at once.
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path)
    finally:
        Path(path).unlink()
    return context


def wrong_certificate() -> bytes:
    """Return a fresh private key and a certificate that no client should accept, as one PEM.

    It is self-signed, for another name, and expired.
    """
    from cryptography import x509  # start-up does without it
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _OTHER_HOST)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2021, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_OTHER_HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return private_pem(key).encode() + certificate.public_bytes(serialization.Encoding.PEM)
