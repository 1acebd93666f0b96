"""JSON Web Tokens as the device cloud takes them: ES256, short-lived (clause D10.2)."""

from __future__ import annotations

import asyncio
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from agent.config.private_files import read_private
from agent.errors import CredentialError

LIFE_S = 600
"""How long a token is good; the vendor's clients take the same."""
RENEW_AFTER_S = 0.8 * LIFE_S
RSA_ADVICE = (
    "the service takes ES256 alone: delete the device, then provision it again with an ES256 "
    "(P-256) certificate (`cellagent provision`)"
)


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of a token; its signature is not checked: only the service holds the key."""

    algorithm: str
    subject: str | None
    audience: Any
    issuer: str | None
    issued_at: int | None
    expires_at: int | None

    @property
    def uuid(self) -> str:
        """The device UUID in the issuer (`<chip>.<uuid>` or bare), lower case; "" without one."""
        return (self.issuer or "").rpartition(".")[2].lower()


def read_claims(token: str) -> TokenClaims:
    """Return the claims of `token`. Raises CredentialError if it is no signed JWT."""
    parts = token.split(".")
    if len(parts) != 3:
        raise CredentialError("the token is no JWT: it has not three parts")
    try:
        header, claims = (msgspec.json.decode(_unpadded(part)) for part in parts[:2])
        signature = _unpadded(parts[2])
    except (ValueError, RecursionError, msgspec.DecodeError) as error:
        raise CredentialError("the token is no JWT: it cannot be decoded") from error
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise CredentialError("the token is no JWT: header or claims are no object")
    algorithm = str(header.get("alg"))
    if algorithm == "ES256" and len(signature) != 64:
        raise CredentialError(f"the token's signature has {len(signature)} bytes instead of 64")
    return TokenClaims(
        algorithm=algorithm,
        subject=_text_or_none(claims, "sub"),
        audience=claims.get("aud"),
        issuer=_text_or_none(claims, "iss"),
        issued_at=_number_or_none(claims, "iat"),
        expires_at=_number_or_none(claims, "exp"),
    )


def check_claims(claims: TokenClaims, *, now: float) -> None:
    """Check what the service checks of every token, whatever its subject. Raises CredentialError.

    `now` is this machine's clock in Unix seconds.
    """
    if claims.algorithm != "ES256":
        raise CredentialError(
            f"the token is signed with {claims.algorithm[:16]}, not ES256", hint=RSA_ADVICE
        )
    if claims.expires_at is None:
        raise CredentialError("the token has no end (`exp`): it was asked for with one")
    if claims.expires_at <= now:
        late = now - claims.expires_at
        raise CredentialError(
            f"the token had expired {late:.0f} s ago when it was made",
            hint="the modem's clock or this machine's is wrong: compare AT+CCLK? with `date -u`, "
            "then see `--set-clock`",
        )


def sign(claims: dict[str, Any], key: ec.EllipticCurvePrivateKey, now: float) -> str:
    """Return a token with these claims that lives LIFE_S from `now` (Unix seconds)."""
    issued = int(now)
    return jwt.encode({**claims, "iat": issued, "exp": issued + LIFE_S}, key, algorithm="ES256")


@lru_cache(maxsize=64)
def signing_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the P-256 key in a PEM file, loaded once. Raises ConfigError, CredentialError."""
    pem = read_private(path, "private key")
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except TypeError as error:
        raise CredentialError(f"{path} is encrypted: store the key without a passphrase") from error
    except ValueError as error:
        raise CredentialError(f"{path} holds no private key in PEM form") from error
    if isinstance(key, rsa.RSAPrivateKey):
        raise CredentialError(f"{path} is an RSA key", hint=RSA_ADVICE)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise CredentialError(f"{path} is no P-256 key: ES256 signs with P-256", hint=RSA_ADVICE)
    return key


class CachedToken:
    """A token that is made when it is first needed and again at 80 % of its life."""

    def __init__(
        self,
        make: Callable[[], Awaitable[str]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._monotonic = monotonic
        self._token = ""
        self._renew_at = 0.0
        self._making = asyncio.Lock()

    async def get(self) -> str:
        """Return the token, making it if need be; callers at the same time share one."""
        async with self._making:
            if not self._token or self._monotonic() >= self._renew_at:
                # Its life is counted from before it was made, by a clock that nobody sets.
                asked = self._monotonic()
                self._token = await self._make()
                self._renew_at = asked + RENEW_AFTER_S
        return self._token

    def drop(self) -> None:
        """Drop the token: the next `get` makes a new one."""
        self._token = ""


def _unpadded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _text_or_none(claims: dict[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is not None and not isinstance(value, str):
        raise CredentialError(f"the token's `{name}` is no text")
    return value


def _number_or_none(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise CredentialError(f"the token's `{name}` is no whole number")
    return value
