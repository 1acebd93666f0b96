"""The operator's CA: its certificate, which must be one that may sign, and its key."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from agent.errors import CredentialError, UsageError
from agent.files.private_files import read_plain
from agent.provisioning.ca.certificates import BACKDATED, client_certificate

if TYPE_CHECKING:
    from pathlib import Path

    from agent.config.pkcs11_uri import Pkcs11Uri
    from agent.provisioning.ca.token import AskPin

CaKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
RENEW_BEFORE = timedelta(days=30)
"""A CA that ends sooner is warned of: what it signs may end before the boards are sold."""
_PROBE = b"cellagent asks whether this key is that of the certificate"


class DeviceCa:
    """The operator's CA, open for signing."""

    def __init__(self, certificate: x509.Certificate, key: CaKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def load(
        cls, certificate_file: Path, key_file: Path, passphrase: Callable[[], str]
    ) -> DeviceCa:
        """Load both files (PEM); `passphrase` is called only when the key is encrypted.

        Raises UsageError when a file cannot be used, is open to others, or they do not fit;
        CredentialError when the passphrase is wrong.
        """
        certificate = read_ca(certificate_file)
        key = _key(key_file, passphrase)
        if key.public_key() != certificate.public_key():
            raise UsageError(f"the key in {key_file} is not that of the CA in {certificate_file}")
        return cls(certificate, key)

    @classmethod
    def on_token(cls, certificate_file: Path, uri: Pkcs11Uri, ask_pin: AskPin) -> DeviceCa:
        """Load the certificate (PEM) and open its key on a token, which signs once as a proof.

        Raises UsageError, CredentialError, TokenError: see `key_on_token`.
        """
        from agent.provisioning.ca.token import key_on_token

        certificate = read_ca(certificate_file)
        key = key_on_token(uri, certificate.public_key(), ask_pin)
        try:
            _prove(key)
        except InvalidSignature as error:
            raise UsageError(
                f"the key on the token is not that of the CA in {certificate_file}",
                hint="compare object= and id= of the URI with what `pkcs11-tool -O` lists",
            ) from error
        return cls(certificate, key)

    def __repr__(self) -> str:
        return f"DeviceCa({self.certificate.subject.rfc4514_string()})"

    def shortens(self, now: datetime, life: timedelta) -> str:
        """Return a note if what is signed now must end with the CA, before its `life`; else ""."""
        end = self.certificate.not_valid_after_utc
        if end - now >= life:
            return ""
        note = (
            f"the CA ends on {end:%Y-%m-%d}, and so do the certificates that it signs, "
            f"instead of {life.days} days from now"
        )
        if end - now < RENEW_BEFORE:
            return f"warning: renew the CA: {note}"
        return note

    def sign(
        self,
        public_key: ec.EllipticCurvePublicKey,
        common_name: str,
        now: datetime,
        life: timedelta,
    ) -> x509.Certificate:
        """Return a client certificate for a board's key, named `common_name` (the device id).

        It ends after its `life`, and with the CA at the latest. Raises UsageError where the CA
        does not hold any more, TokenError where its token is gone.
        """
        _require_valid(self.certificate, now)
        # Within the CA's own time: some verifiers want a chain's times nested.
        begin = max(now - BACKDATED, self.certificate.not_valid_before_utc)
        end = min(now + life, self.certificate.not_valid_after_utc)
        builder = client_certificate(public_key, common_name, begin, end)
        return (
            builder.issuer_name(self.certificate.subject)
            .add_extension(_key_identifier(self.certificate), critical=False)
            .sign(self._key, hashes.SHA256())
        )


class _Encrypted(Exception):
    """A key opens by its passphrase alone."""


def require_key(certificate_file: Path, key_file: Path) -> None:
    """Check a CA's files as far as nobody need be asked for a passphrase.

    Raises UsageError as `DeviceCa.load`.
    """

    def unasked() -> str:
        raise _Encrypted

    with suppress(_Encrypted):
        DeviceCa.load(certificate_file, key_file, unasked)


def _key_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Return the issuer's own identifier of its key, however it was made; else the usual digest."""
    try:
        own = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        public_key = issuer.public_key()
        assert isinstance(public_key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey)
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(public_key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _prove(key: CaKey) -> None:
    """Let the key sign a probe. Raises InvalidSignature where it is not the certificate's."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = ec.ECDSA(hashes.SHA256())
        key.public_key().verify(key.sign(_PROBE, algorithm), _PROBE, algorithm)
    else:
        signature = key.sign(_PROBE, padding.PKCS1v15(), hashes.SHA256())
        key.public_key().verify(signature, _PROBE, padding.PKCS1v15(), hashes.SHA256())


def ends_before(certificate: x509.Certificate, now: datetime, life: timedelta) -> datetime | None:
    """Return when a CA ends, if a certificate of that `life` ends with it, else None.

    Raises UsageError where it does not hold now.
    """
    _require_valid(certificate, now)
    end = certificate.not_valid_after_utc
    return end if end - now < life else None


def _require_valid(certificate: x509.Certificate, now: datetime) -> None:
    """Raise UsageError where the CA's certificate does not hold at this time."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > end:
        raise UsageError(
            f"the CA's certificate expired on {end:%Y-%m-%d}: what it signs is worth nothing",
            hint="`cellagent provision ca create FOLDER` makes another; or this host's clock is "
            "wrong: compare it with `date -u`",
        )
    if now < begin:
        raise UsageError(
            f"the CA's certificate holds from {begin:%Y-%m-%d %H:%M}, and this host's clock "
            f"says {now:%Y-%m-%d %H:%M} (UTC)",
            hint="set this host's clock with `timedatectl set-ntp true`, then run again",
        )


def read_ca(file: Path) -> x509.Certificate:
    """Return the one certificate in a file. Raises UsageError unless it may sign others."""
    if b"PRIVATE KEY" in (content := read_plain(file, "provisioning.device_ca_file")):
        # A file for the key, too: then it must be kept like one.
        what = "provisioning.device_ca_file, which holds a private key"
        content = read_plain(file, what, private=True)
    try:
        certificates = x509.load_pem_x509_certificates(content)
        if len(certificates) > 1:
            raise UsageError(
                f"{file} holds {len(certificates)} certificates: which of them is to sign?",
                hint="name a file that holds the signing CA's alone",
            )
        _require_ca(certificates[0], file)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file} holds no certificate in PEM form that can be read") from error
    return certificates[0]


def _require_ca(certificate: x509.Certificate, file: Path) -> None:
    certificate.public_key()  # one of an unknown kind ends here
    extensions = certificate.extensions
    try:
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
        is_ca = constraints.ca
    except x509.ExtensionNotFound:
        is_ca = False
    if not is_ca:
        raise UsageError(
            f"the certificate in {file} may not sign others: it does not say CA:TRUE",
            hint="name the CA's own certificate, not one that it signed",
        )
    try:
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return  # without it, every use is allowed: RFC 5280, 4.2.1.3
    if not usage.key_cert_sign:
        raise UsageError(
            f"the certificate in {file} may not sign others: its key usage lacks keyCertSign",
            hint="have the CA's certificate made again with keyCertSign",
        )


def _key(file: Path, passphrase: Callable[[], str]) -> CaKey:
    content = read_plain(file, "provisioning.device_ca_key_file", private=True)
    try:
        key = _load_key(file, content, passphrase)
    except UnsupportedAlgorithm as error:
        raise UsageError(f"the CA key in {file} is of a kind that is not known here") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise UsageError(f"the CA key in {file} is neither an elliptic-curve nor an RSA key")
    return key


def _load_key(file: Path, content: bytes, passphrase: Callable[[], str]) -> object:
    try:
        return serialization.load_pem_private_key(content, None)
    except TypeError:  # it is encrypted
        pass
    except ValueError as error:
        raise UsageError(
            f"{file} holds no private key in PEM form that can be read",
            hint=f"`openssl pkey -in {shlex.quote(str(file))} -noout -check` tells more",
        ) from error
    try:
        return serialization.load_pem_private_key(content, passphrase().encode())
    except (ValueError, TypeError) as error:  # TypeError: an empty one
        raise CredentialError(
            f"the passphrase does not open the CA key {file}, or the file is damaged",
            hint="run the same command again, and type it again",
        ) from error
