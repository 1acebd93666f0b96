"""Calls, keys and a modem that signs tokens, for the tests of credentials."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.auth.modem_jwt import ModemJwt
from agent.call import Call, Host, Request, Scheme
from at.tokens.jwt import Jwt, read_jwt

UUID = "50363154-3930-4d96-80f9-13121cf35adc"


NOW = 1_767_323_045.0


@dataclass(frozen=True, slots=True)
class Push(Call[None]):
    path: str = "/api/v0/events"
    host = Host.INGRESS
    schemes = (Scheme.PROJECT_KEY,)

    def request(self) -> Request:
        return Request("POST", self.path)


class Modem:
    """Answers AT%JWT as the modem does: `sub` only where one was given, the UUID in `iss`."""

    def __init__(self, **changed: Any) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.asked: list[str] = []
        self.changed = changed

    async def __call__(self, subject: str, life_s: int) -> Jwt:
        self.asked.append(subject)
        claims: dict[str, Any] = {"iss": f"nRF9161.{UUID}", "jti": f"x{len(self.asked)}"}
        claims |= {"iat": int(NOW), "exp": int(NOW) + life_s}
        if subject:
            claims["sub"] = subject
        claims = {k: v for k, v in (claims | self.changed).items() if v is not None}
        return read_jwt(jwt.encode(claims, self.key, "ES256"))


def claims_of(headers: Any) -> dict[str, Any]:
    token = headers["authorization"].removeprefix("Bearer ")
    return jwt.decode(token, options={"verify_signature": False})


def pem(path: Path, key: Any) -> Path:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    return path


def modem_jwt(modem: Modem, device_id: str = "", **clocks: Any) -> ModemJwt:
    return ModemJwt(modem, device_id, now=lambda: NOW, **clocks)
