"""Private keys for the certificate builder whose signatures a token makes.

The builder takes every implementation of these two interfaces and calls `sign` alone, so that one
set of rules makes all certificates, wherever the CA's key is. The token is asked for one signature
at a time, and abandoned when it does not answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from pkcs11 import Mechanism
from pkcs11 import exceptions as refusals

from agent.errors import AgentError

if TYPE_CHECKING:
    from cryptography.utils import Buffer

    from agent.config.secrets import Secret

T = TypeVar("T")
ANSWERS_WITHIN_S = 60.0
"""For one call: some tokens wait for a touch, and a lost network HSM keeps its caller for ever."""
PIN_REFUSED = (refusals.PinIncorrect, refusals.PinInvalid, refusals.PinLenRange, refusals.PinLocked)
_GONE = (
    refusals.DeviceError,
    refusals.DeviceRemoved,
    refusals.KeyHandleInvalid,
    refusals.ObjectHandleInvalid,
    refusals.SessionClosed,
    refusals.SessionHandleInvalid,
    refusals.SlotIDInvalid,
    refusals.TokenNotPresent,
    refusals.UserNotLoggedIn,
)
AskToken = Callable[[bytes], bytes]
"""Returns the token's signature of the bytes. Raises TokenError."""


class _OnToken:
    """Base of both kinds of key: operations that would need the key outside its token."""

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


class TokenEcKey(_OnToken, ec.EllipticCurvePrivateKey):
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

    def sign(self, data: Buffer, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
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


class TokenRsaKey(_OnToken, rsa.RSAPrivateKey):
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


class TokenError(AgentError):
    """The token failed: it was taken out, does not answer, or refused.

    `over`: it is not used again in this run.
    """

    kind = "token"

    def __init__(self, message: str, *, over: bool = False) -> None:
        super().__init__(
            message, hint="see to the token, then run again: what was done is in the ledger"
        )
        self.over = over


class Signer:
    """A private key in an open session, asked by one thread at a time.

    The module was initialised for one thread. `pin` is for a key that requires it
    for every signature, None for the rest.
    """

    def __init__(self, key: Any, mechanism: Mechanism, label: str, pin: Secret | None) -> None:
        self._key = key
        self._mechanism = mechanism
        self._label = label
        self._pin = pin
        self._over = ""
        self._lock = threading.Lock()

    def sign(self, data: bytes) -> bytes:
        """Return the mechanism's signature of `data`. Raises TokenError."""
        pin = {"pin": self._pin.reveal()} if self._pin is not None else {}
        ask = partial(self._key.sign, data, mechanism=self._mechanism, **pin)
        with self._lock:
            if self._over:
                raise TokenError(self._over, over=True)
            try:
                signature: bytes = in_time(ask, f"the token {self._label} did not sign")
            except TokenError as failed:
                self._over = str(failed) if failed.over else ""
                raise
        return signature


def in_time(call: Callable[[], T], failure: str) -> T:
    """Return what `call` returns; it is made in a thread of its own, which no exit waits for.

    Raises TokenError, which begins with `failure`, where the module refuses or keeps us too long.
    """
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
            answer.set_exception(error)

    threading.Thread(target=work, name="pkcs11", daemon=True).start()
    try:
        return answer.result(ANSWERS_WITHIN_S)
    except TimeoutError as error:
        raise TokenError(f"{failure} within {ANSWERS_WITHIN_S:.0f} s", over=True) from error
    except refusals.PKCS11Error as error:
        # A PIN that failed is not tried again: the next board would, until the token locks itself.
        over = isinstance(error, PIN_REFUSED)
        raise TokenError(f"{failure}: {reason_of(error)}", over=over) from error


def reason_of(error: refusals.PKCS11Error) -> str:
    """Return, for a message, why the module refused."""
    if isinstance(error, _GONE):
        return "it was taken out, or its session ended"
    return str(error) or type(error).__name__
