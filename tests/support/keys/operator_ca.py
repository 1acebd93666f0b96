"""A CA of an operator, made for a test."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from tests.support.keys.openssl import openssl

NOW = datetime.now(UTC)
LATER = NOW.replace(year=NOW.year + 40)
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA, not for use")])

CaKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def make_ca(
    folder: Path,
    *,
    key: CaKey | None = None,
    password: bytes | None = None,
    ca: bool = True,
    cert_sign: bool = True,
    begin: datetime = NOW,
    end: datetime = LATER,
    key_identifier: bytes | None = None,
) -> tuple[Path, Path]:
    """Write a CA certificate and its key for a test; by itself it is one that may sign."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    public = key.public_key()
    identifier = (
        x509.SubjectKeyIdentifier(key_identifier)
        if key_identifier
        else x509.SubjectKeyIdentifier.from_public_key(public)
    )
    usage = x509.KeyUsage(
        digital_signature=not cert_sign, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=cert_sign, crl_sign=cert_sign,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(NAME).issuer_name(NAME).public_key(public)
        .serial_number(1).not_valid_before(begin).not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    encryption = (
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption()
    )
    certificate_file, key_file = folder / "ca.pem", folder / "ca.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    )
    key_file.chmod(0o600)
    return certificate_file, key_file


def openssl_verifies(authority: Path, leaf: str) -> None:
    """Have OpenSSL judge a certificate (PEM)."""
    (authority.parent / "judged.pem").write_text(leaf)
    judged = openssl(authority.parent, "verify", "-x509_strict", "-CAfile", authority, "judged.pem")
    assert judged.returncode == 0, judged.stderr


def openssl_verifies_all(authority: Path, leaves: Sequence[str]) -> None:
    """Have OpenSSL judge the client certificates (PEM) of many devices in one call."""
    files = []
    for number, leaf in enumerate(leaves):
        files.append(authority.parent / f"judged-{number}.pem")
        files[-1].write_text(leaf)
    strictly = "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", authority
    judged = openssl(authority.parent, *strictly, *files)
    assert judged.returncode == 0, judged.stderr
    assert judged.stdout.count(": OK") == len(leaves)
