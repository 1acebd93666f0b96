"""What every certificate that the stand-in makes has in common, and one that no client accepts."""

from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.standin.jwt import private_pem

_OTHER_HOST = "elsewhere.invalid"
_LONGEST_NAME = 64
"""Characters of a common name (RFC 5280, appendix A.1)."""


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a fresh private key."""
    return ec.generate_private_key(ec.SECP256R1())


def common_name(text: str, *more: x509.NameAttribute[str]) -> x509.Name:
    """Return a name: a common name, cut where it is too long, and what follows it."""
    attribute = x509.NameAttribute(x509.NameOID.COMMON_NAME, text[:_LONGEST_NAME])
    return x509.Name([attribute, *more])


def certificate_builder(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    """Return the builder of a certificate without extensions."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def signed_pem(builder: x509.CertificateBuilder, by: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the certificate that the key `by` signs."""
    return builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def wrong_certificate() -> bytes:
    """Return a fresh private key and a certificate that no client should accept, as one PEM.

    It is self-signed, for another name, and expired.
    """
    key, name = new_key(), common_name(_OTHER_HOST)
    begin, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
    builder = certificate_builder(name, key.public_key(), name, begin, end).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(_OTHER_HOST)]), critical=False
    )
    return private_pem(key).encode() + signed_pem(builder, key)
