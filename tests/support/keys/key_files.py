"""Public keys and certificates for tests: made anew, good for a day, and for nothing else."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def pem(key) -> str:
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def certificate(key, *, unit: str = "") -> str:
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "test key, no secret")]
    if unit:
        names.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    return _signed_by_itself(key, names, 0, 1).decode()


def self_signed(
    name: str, address: str = "127.0.0.1", *, begin_days: int = -1, end_days: int = 1
) -> bytes:
    """Return a key and its certificate for a name and an address ("": for none), as PEM.

    For what serves over TLS: a CA as well, good from `begin_days` to `end_days` after today.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    addresses = [x509.IPAddress(ip_address(address))] if address else []
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + _signed_by_itself(
        key,
        [x509.NameAttribute(NameOID.COMMON_NAME, name)],
        begin_days,
        end_days,
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (x509.SubjectAlternativeName([x509.DNSName(name), *addresses]), False),
    )


def _signed_by_itself(key, names, begin_days: int, end_days: int, *extensions) -> bytes:
    subject, now = x509.Name(names), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=begin_days))
        .not_valid_after(now + timedelta(days=end_days))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
