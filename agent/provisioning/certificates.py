"""Certificates and keys of the bench: signed by the operator's CA or self-signed, always P-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from agent.errors import UsageError

VALID_FOR = timedelta(days=365 * 30)
"""A device's certificate outlives the device: there is no way to renew one on a modem at sea."""
_BACKDATED = timedelta(days=1)
"""A board's clock may be behind."""

CaKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class DeviceCa:
    """The operator's CA: its certificate, and its key for as long as the bench runs."""

    def __init__(self, certificate: x509.Certificate, key: CaKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def load(
        cls, certificate_file: Path, key_file: Path, passphrase: Callable[[], str]
    ) -> DeviceCa:
        """Load both files (PEM); `passphrase` is called only when the key is encrypted.

        Raises UsageError when a file cannot be read, is open to others, or they do not fit.
        """
        certificate = _certificate(certificate_file)
        key = _key(key_file, passphrase)
        if key.public_key() != certificate.public_key():
            raise UsageError(f"the key in {key_file} is not that of the CA in {certificate_file}")
        try:
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
            is_ca = constraints.value.ca
        except x509.ExtensionNotFound:
            is_ca = False
        if not is_ca:
            raise UsageError(f"the certificate in {certificate_file} may not sign others")
        return cls(certificate, key)

    def __repr__(self) -> str:
        return f"DeviceCa({self.certificate.subject.rfc4514_string()})"

    def sign(
        self, public_key: ec.EllipticCurvePublicKey, common_name: str, now: datetime
    ) -> x509.Certificate:
        """Return a client certificate for a board's key, named `common_name` (the device id)."""
        builder = _builder(public_key, common_name, now).issuer_name(self.certificate.subject)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(authority, critical=False).sign(self._key, hashes.SHA256())


def self_signed(
    key: ec.EllipticCurvePrivateKey, common_name: str, now: datetime
) -> x509.Certificate:
    """Return a client certificate that its own key signed."""
    builder = _builder(key.public_key(), common_name, now)
    return builder.issuer_name(_name(common_name)).sign(key, hashes.SHA256())


def pem_of(certificate: x509.Certificate) -> str:
    """Return a certificate as PEM text, the form in which the modem keeps it."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def public_pem(key: ec.EllipticCurvePublicKey) -> str:
    """Return a public key as PEM text (SubjectPublicKeyInfo)."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode("ascii")


def public_key_of(certificate: x509.Certificate) -> str:
    """Return the public key of a certificate as PEM, "" if it is no elliptic-curve key."""
    key = certificate.public_key()
    return public_pem(key) if isinstance(key, ec.EllipticCurvePublicKey) else ""


def key_fingerprint(pem: str) -> str:
    """Return the SHA-256, in hex, of a public key's SubjectPublicKeyInfo: a JWT's `kid`."""
    key = serialization.load_pem_public_key(pem.encode())
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def algorithm_of(pem: str) -> str:
    """Return what kind of key a certificate is for, "RSA" or "EC"; "" where it cannot be told."""
    try:
        key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return ""
    if isinstance(key, rsa.RSAPublicKey):
        return "RSA"
    return "EC" if isinstance(key, ec.EllipticCurvePublicKey) else ""


def private_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Return a private key as PEM text, for the one place that it goes to: the modem."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode("ascii")


def _builder(
    public_key: ec.EllipticCurvePublicKey, common_name: str, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(common_name))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=True,
                key_cert_sign=False,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate(file: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except OSError as error:
        raise UsageError(f"the CA certificate {file}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{file} holds no certificate in PEM form") from error


def _key(file: Path, passphrase: Callable[[], str]) -> CaKey:
    try:
        if os.name != "nt" and file.stat().st_mode & 0o077:
            raise UsageError(f"the CA key {file} can be read by others", hint=f"chmod 600 {file}")
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"the CA key {file}: {error.strerror}") from error
    try:
        try:
            key = serialization.load_pem_private_key(content, None)
        except TypeError:  # it is encrypted
            key = serialization.load_pem_private_key(content, passphrase().encode())
    except ValueError as error:
        raise UsageError(
            f"{file} holds no private key in PEM form, or the passphrase is another"
        ) from error
    if isinstance(key, ed25519.Ed25519PrivateKey) or not isinstance(
        key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    ):
        raise UsageError(f"the CA key in {file} is neither an elliptic-curve nor an RSA key")
    return key
