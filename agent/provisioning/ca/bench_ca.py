"""Makes a CA for a bench: a P-256 key, in an encrypted file or on a token, and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.errors import AgentError, UsageError
from agent.files.private_files import write_private
from agent.provisioning.ca.certificates import BACKDATED, name_of, pem_of, unsigned_certificate

if TYPE_CHECKING:
    from agent.config.pkcs11_uri import Pkcs11Uri
    from agent.provisioning.ca.token import AskPin


def ca_certificate(
    key: ec.EllipticCurvePrivateKey, name: str, now: datetime, life: timedelta
) -> x509.Certificate:
    """Return the certificate of a CA that signs boards' certificates, and no other CA's.

    RFC 5280, 4.2.1: CA:TRUE with a path length of 0, keyCertSign and cRLSign, all critical.
    """
    begin, end, uses = now - BACKDATED, now + life, ("key_cert_sign", "crl_sign")
    made = unsigned_certificate(key.public_key(), name, begin, end, uses, is_ca=True)
    return made.issuer_name(name_of(name)).sign(key, hashes.SHA256())


def create_ca(
    folder: Path, name: str, passphrase: Callable[[], str], now: datetime, life: timedelta
) -> tuple[Path, Path]:
    """Write ca.pem and ca.key (0600, PKCS #8, encrypted) into a folder; return both paths.

    `passphrase` is called only where neither is there. Nothing is overwritten, and no key is
    left without its certificate. Raises UsageError, AgentError.
    """
    certificate_file, key_file = folder / "ca.pem", folder / "ca.key"
    _require_free(certificate_file, key_file)
    key = ec.generate_private_key(ec.SECP256R1())
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase().encode()),
    )
    certificate = ca_certificate(key, name, now, life)
    _write(key_file, encrypted)
    try:
        _write(certificate_file, pem_of(certificate).encode("ascii"))
    except BaseException:
        key_file.unlink()
        raise
    return certificate_file, key_file


def create_ca_on_token(
    folder: Path, name: str, uri: Pkcs11Uri, ask_pin: AskPin, now: datetime, life: timedelta
) -> Path:
    """Make the key on a token, called as `uri` says; write ca.pem into a folder, return its path.

    Nothing is overwritten, and no key is left without its certificate. Raises UsageError,
    CredentialError, TokenError, AgentError.
    """
    from agent.provisioning.ca.token import new_key_on_token

    certificate_file = folder / "ca.pem"
    _require_free(certificate_file)
    with new_key_on_token(uri, ask_pin) as key:
        certificate = ca_certificate(key, name, now, life)
        _write(certificate_file, pem_of(certificate).encode("ascii"))
    return certificate_file


def _require_free(*files: Path) -> None:
    for file in files:
        if file.exists():
            raise UsageError(
                f"{file} is there already: a CA is never overwritten",
                hint="use that one, or name another folder: `cellagent provision ca create FOLDER`",
            )


def _write(file: Path, content: bytes) -> None:
    try:
        write_private(file, content)
    except OSError as error:
        raise AgentError(f"the CA's folder {file.parent}: {error.strerror}") from error
