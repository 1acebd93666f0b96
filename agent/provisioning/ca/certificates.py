"""Contents of a board's certificate, for every signer; keys as PEM text, and host key files."""

from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from agent.errors import AgentError, ConfigError, RefusedByRule
from agent.files.private_files import read_plain, write_private
from at.tokens.key_formats import key_id, key_pem, load_public_key

BACKDATED = timedelta(days=1)
"""A certificate begins so much before it is made: the clock that judges it may be behind."""

_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def client_certificate(
    public_key: ec.EllipticCurvePublicKey, common_name: str, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    """Return a client certificate for a board's key, without issuer and signature."""
    uses = ("digital_signature", "key_agreement")
    return unsigned_certificate(public_key, common_name, begin, end, uses)


def unsigned_certificate(
    public_key: ec.EllipticCurvePublicKey,
    common_name: str,
    begin: datetime,
    end: datetime,
    uses: Collection[str],
    *,
    is_ca: bool = False,
) -> x509.CertificateBuilder:
    """Return a certificate without issuer and signature; `uses` are the bits of its key usage."""
    return (
        x509.CertificateBuilder()
        .subject_name(name_of(common_name))
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(
            x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.KeyUsage(**{use: use in uses for use in _USES}), critical=True)
    )


def self_signed(
    key: ec.EllipticCurvePrivateKey, common_name: str, now: datetime, life: timedelta
) -> x509.Certificate:
    """Return a client certificate that its own key signed."""
    builder = client_certificate(key.public_key(), common_name, now - BACKDATED, now + life)
    return builder.issuer_name(name_of(common_name)).sign(key, hashes.SHA256())


def name_of(common_name: str) -> x509.Name:
    """Return a name that is a common name alone."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def name_in(certificate: x509.Certificate) -> str:
    """Return the common name of a certificate, "" if it has none."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def pem_of(certificate: x509.Certificate) -> str:
    """Return a certificate as PEM text, the form in which the modem keeps it."""
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def serial_of(certificate: x509.Certificate) -> str:
    """Return the serial number of a certificate as OpenSSL prints it: whole bytes, in hex."""
    digits = f"{certificate.serial_number:X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def describe(certificate: x509.Certificate) -> str:
    """Return the serial number of a certificate, and its end."""
    return f"serial {serial_of(certificate)}, ends {certificate.not_valid_after_utc:%Y-%m-%d}"


def public_key_of(certificate: x509.Certificate) -> str:
    """Return the public key of a certificate as PEM, "" if it is no elliptic-curve key."""
    key = certificate.public_key()
    return key_pem(key) if isinstance(key, ec.EllipticCurvePublicKey) else ""


def key_fingerprint(pem: str) -> str:
    """Return the SHA-256, in hex, of a public key's SubjectPublicKeyInfo: a JWT's `kid`."""
    return key_id(load_public_key(pem.encode()))


def algorithm_of(pem: str) -> str:
    """Return the kind of a certificate's key, "RSA" or "EC"; "" for another or a damaged one."""
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
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode("ascii")


def host_key_name(uuid: str, pem: str) -> str:
    """Return the name of the file in which this host keeps a board's key."""
    return f"{uuid}-{key_fingerprint(pem)[:16]}.pem"


def load_or_make_host_key(folder: Path, name: str) -> ec.EllipticCurvePrivateKey:
    """Return the key in the file `name`, which an interrupted run recorded; else a new key."""
    if name and (folder / Path(name).name).exists():
        return load_host_key(folder / Path(name).name)
    return ec.generate_private_key(ec.SECP256R1())


def store_host_key(key: ec.EllipticCurvePrivateKey, file: Path) -> None:
    """Store `key` in `file`, readable by its owner alone from the start, on disk on return.

    Raises RefusedByRule where the file holds another key.
    """
    pem = private_pem(key).encode("ascii")
    try:
        if file.exists() and file.read_bytes() != pem:
            raise RefusedByRule(f"{file} holds another key: a key is never overwritten")
        # A fixed name until it is whole: no kill leaves a second copy of a key that is at work.
        write_private(file, pem, unfinished=file.with_suffix(".new"))
    except OSError as error:
        raise AgentError(f"the key file {file}: {error.strerror}") from error


def load_host_key(file: Path) -> ec.EllipticCurvePrivateKey:
    """Return the key in a file. Raises AgentError."""
    try:
        pem = read_plain(file, "the board's key, made on a host", private=True)
    except ConfigError as error:
        raise AgentError(
            str(error), hint=error.hint or "run on the station that made it, or bring the file here"
        ) from error
    try:
        key = serialization.load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise AgentError(f"{file} holds no private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise AgentError(f"{file} holds no P-256 key")
    return key
