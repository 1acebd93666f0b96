"""Keys that sign by asking a token: what the certificate builder takes for a private key.

The builder takes every implementation of these two interfaces and calls `sign` alone, so that one
set of rules makes all certificates, wherever the CA's key is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

if TYPE_CHECKING:
    from cryptography.utils import Buffer

AskToken = Callable[[bytes], bytes]


class _KeptByTheToken:
    """What both kinds cannot do, since nobody but the token has the key."""

    def private_bytes(self, *_: object) -> NoReturn:
        """Refuse: the key does not leave its token."""
        raise UnsupportedAlgorithm("the key does not leave its token")

    def private_numbers(self) -> NoReturn:
        """Refuse, likewise."""
        self.private_bytes()

    def exchange(self, *_: object) -> NoReturn:
        """Refuse: a CA's key signs and does nothing else."""
        raise UnsupportedAlgorithm("a CA's key signs and does nothing else")

    decrypt = exchange

    def __copy__(self) -> NoReturn:
        self.private_bytes()

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.private_bytes()


class TokenEcKey(_KeptByTheToken, ec.EllipticCurvePrivateKey):
    """An elliptic-curve key; `ask` gives CKM_ECDSA's signature (r and s) of a digest."""

    def __init__(self, public_key: ec.EllipticCurvePublicKey, ask: AskToken) -> None:
        self._public_key = public_key
        self._ask = ask

    def public_key(self) -> ec.EllipticCurvePublicKey:
        """Return the public half, as the CA's certificate has it."""
        return self._public_key

    @property
    def curve(self) -> ec.EllipticCurve:
        """The curve of both halves."""
        return self._public_key.curve

    @property
    def key_size(self) -> int:
        """Bits of the curve."""
        return self._public_key.key_size

    def sign(
        self,
        data: Buffer,
        signature_algorithm: ec.EllipticCurveSignatureAlgorithm,
    ) -> bytes:
        """Return the signature as DER. The digest is made here: every token signs one."""
        algorithm = signature_algorithm.algorithm
        if not isinstance(algorithm, hashes.HashAlgorithm):
            raise UnsupportedAlgorithm("a digest made elsewhere is not signed")
        digest = hashes.Hash(algorithm)
        digest.update(data)
        signature = self._ask(digest.finalize())
        half = len(signature) // 2
        r, s = signature[:half], signature[half:]
        return encode_dss_signature(int.from_bytes(r), int.from_bytes(s))


class TokenRsaKey(_KeptByTheToken, rsa.RSAPrivateKey):
    """An RSA key; `ask` gives CKM_SHA256_RSA_PKCS's signature of the data itself."""

    def __init__(self, public_key: rsa.RSAPublicKey, ask: AskToken) -> None:
        self._public_key = public_key
        self._ask = ask

    def public_key(self) -> rsa.RSAPublicKey:
        """Return the public half, as the CA's certificate has it."""
        return self._public_key

    @property
    def key_size(self) -> int:
        """Bits of the modulus."""
        return self._public_key.key_size

    def sign(self, data: Buffer, padding: AsymmetricPadding, algorithm: object) -> bytes:
        """Return the signature, PKCS #1 v1.5 with SHA-256: nothing else is asked for here."""
        if not isinstance(padding, PKCS1v15) or not isinstance(algorithm, hashes.SHA256):
            raise UnsupportedAlgorithm("the token is asked for PKCS #1 v1.5 with SHA-256 alone")
        return self._ask(bytes(data))
