"""Tokens signed with key files: of a device (D10.3), and of the services (D10.4)."""

import shlex
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from agent.auth.credential import Credential
from agent.auth.token_lifetime import LIFE_S, CachedToken, DeviceToken
from agent.call import Call, Scheme
from agent.errors import ConfigError, CredentialError, CredentialMissing
from agent.files.paths import named_path
from agent.files.private_files import read_private

RSA_ADVICE = (
    "the service takes ES256 alone: delete the device, then provision it again with an ES256 "
    "(P-256) certificate (`cellagent provision run`)"
)


class DeviceKey(DeviceToken):
    """Signs a device's tokens with a key on this host: `sub` is the device, without `aud`."""

    warning = "the device's private key lies on this host: a key made on the modem never leaves it"

    def __init__(
        self, path: str | Path, device_id: str, *, now: Callable[[], float] = time.time
    ) -> None:
        if not device_id:
            raise ConfigError(
                "kit.device_id is not set: a token made with kit.device_key_file has to name the "
                "device"
            )
        self._path = named_path(path)
        self._device_id = device_id
        self._now = now
        public = f"{self._path}.pub"
        makes = ["openssl", "pkey", "-in", str(self._path), "-pubout", "-out", public]
        registers = ["cellagent", "device", "register-key", self._device_id, public]
        self.refused = {
            401: f"kit.device_key_file is {self._path}: is its public key registered for "
            f"{self._device_id!r}? `{shlex.join(makes)}`, then `{shlex.join(registers)}` does it"
        }
        super().__init__()

    async def make(self) -> str:
        """Return a token. Raises ConfigError, CredentialError."""
        key = signing_key(self._path, of_another_kind=RSA_ADVICE)
        return sign({"sub": self._device_id}, key, self._now())


ANY_SERVICE = "all"
_NOT_ITS_KEY = (
    "that is no key which the service made: name the one that it did in "
    "credentials.service_key_files; in the service's portal a team owner makes another"
)
_MAX_TOKENS = 256  # pairs of service and device; a bench has fewer kits


class ServiceKeys(Credential):
    """Signs with a key for each service: `aud` is the team, `sub` the call's device, if any."""

    scheme = Scheme.SERVICE_JWT

    def __init__(
        self, files: Mapping[str, str], team_id: str, *, now: Callable[[], float] = time.time
    ) -> None:
        if not team_id:
            raise ConfigError(
                "account.team_id is not set: a token made with a service key names the team"
            )
        self._files = {service: named_path(path) for service, path in files.items()}
        self._team_id = team_id
        shown = ", ".join(f"{service}: {path}" for service, path in self._files.items())
        self.refused = dict.fromkeys(
            (401, 403),
            f"is account.team_id ({self._team_id}) the team's id, and does the key of "
            f"credentials.service_key_files ({shown}) belong to this service? Making "
            "a new service key ends the old one; it needs a Pro or Enterprise plan and the team "
            "owner role",
        )
        self._now = now
        self._tokens: OrderedDict[tuple[str, str], CachedToken] = OrderedDict()

    async def headers(self, call: Call[object]) -> Mapping[str, str]:
        """Return the Authorization header. Raises ConfigError, CredentialError."""
        pair = (call.service, call.serves())
        if pair not in self._tokens:
            self._tokens[pair] = CachedToken(partial(self._make, *pair))
            if len(self._tokens) > _MAX_TOKENS:
                self._tokens.popitem(last=False)
        return {"authorization": f"Bearer {await self._tokens[pair].get()}"}

    def forget(self) -> bool:
        """Drop all tokens; the next are made anew."""
        self._tokens.clear()
        return True

    async def _make(self, service: str, device_id: str) -> str:
        path = self._files.get(service) or self._files.get(ANY_SERVICE)
        if path is None:
            there = ", ".join(sorted(self._files)) or "none"
            raise CredentialMissing(
                f"no service key for {service or 'this call'}; there are keys for: {there}",
                hint="`cellagent config set "
                f"credentials.service_key_files.{service or ANY_SERVICE} FILE`",
            )
        claims = {"aud": self._team_id, **({"sub": device_id} if device_id else {})}
        return sign(claims, signing_key(path, of_another_kind=_NOT_ITS_KEY), self._now())


def sign(claims: Mapping[str, object], key: ec.EllipticCurvePrivateKey, now: float) -> str:
    """Return a token with these claims that lives LIFE_S from `now` (Unix seconds)."""
    issued = int(now)
    return jwt.encode({**claims, "iat": issued, "exp": issued + LIFE_S}, key, algorithm="ES256")


def signing_key(path: Path, *, of_another_kind: str) -> ec.EllipticCurvePrivateKey:
    """Return the P-256 key in a PEM file. Raises ConfigError, CredentialError.

    `of_another_kind` is the hint where it is no such key.
    """
    pem = read_private(path, "private key")
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except TypeError as error:
        raise CredentialError(f"{path} is encrypted: store the key without a passphrase") from error
    except ValueError as error:
        raise CredentialError(f"{path} holds no private key in PEM form") from error
    if isinstance(key, rsa.RSAPrivateKey):
        raise CredentialError(f"{path} is an RSA key", hint=of_another_kind)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise CredentialError(
            f"{path} is no P-256 key: ES256 signs with P-256", hint=of_another_kind
        )
    return key
