"""The device's own token, made by its modem (clauses D10.3, D10.5)."""

import time
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from agent.auth.key_files import RSA_ADVICE
from agent.auth.token_lifetime import LIFE_S, NOTABLE_SKEW_S, DeviceToken
from agent.errors import CredentialError
from at.commands.jwt import NO_TIME, MakeJwt
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected
from at.tokens.jwt import Jwt, WrongAlgorithm

_COMPARE = (
    "the modem's clock or this machine's is wrong: compare AT+CCLK? with `date -u`, then " + NO_TIME
)


class AskModem(Protocol):
    """A function that requests a token from a modem (`AT%JWT`)."""

    async def __call__(self, subject: str, life_s: int) -> Jwt:
        """Return an ES256 token that lives `life_s`; without `sub` where `subject` is ""."""


class ModemJwt(DeviceToken):
    """Tokens that the kit's modem signs; the key never leaves the modem.

    `device_id` is the id at the device cloud, "" for the modem's UUID. A token has a `sub` unless
    the id is that UUID.
    """

    def __init__(
        self,
        ask: AskModem,
        device_id: str = "",
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._now = now
        self._configured_id = device_id
        self._ahead_s = 0.0
        """How far the modem's clock was ahead of this machine's, by its last token."""
        # An id that looks like a UUID may be the modem's own: its first token shows that.
        self._subject = "" if _uuid(device_id) else device_id
        super().__init__(monotonic)

    def advice(self, status: int) -> str:
        """Return what to check after a refusal."""
        if status != 401:
            return ""
        if self._ahead_s > NOTABLE_SKEW_S:
            return f"the token begins {self._ahead_s:.0f} s from now: {_COMPARE}"
        common = "is the device's public key registered? `cellagent provision run` does it."
        if self._subject:
            return f"{common} The token's `sub` is {self._subject!r}: is that the device's id?"
        return (
            f"{common} The token has no `sub`, which is right only where the device's id is the "
            "modem's UUID: else `cellagent config set kit.device_id ID`, or provision the kit "
            "again with a certificate that uses the UUID"
        )

    async def make(self) -> str:
        """Return a token that the modem made. Raises CredentialError, at.AtError."""
        made = await self._requested()
        configured = self._configured_id
        if not self._subject and configured and _issuer_uuid(made) != _uuid(configured):
            self._subject = configured
            made = await self._requested()
        if not self._subject and not _issuer_uuid(made):
            raise CredentialError(
                "the modem's token names no device: neither `sub` nor a UUID in `iss`",
                hint="`cellagent config set kit.device_id ID` names the device",
            )
        return made.token

    async def _requested(self) -> Jwt:
        try:
            made = await self._ask(self._subject, LIFE_S)
        except WrongAlgorithm as error:
            raise CredentialError(str(error), hint=RSA_ADVICE) from error
        now = self._now()
        check_claims(made, now=now)
        self._ahead_s = _begins_in_s(made, now)
        if made.claims.get("aud") is not None:
            raise CredentialError("the modem's token has an `aud`, which a device's may not have")
        subject = made.claims.get("sub", "")
        if subject != self._subject:
            raise CredentialError(
                f"the modem's token is for {subject or 'nobody'!r}, "
                f"asked for {self._subject or 'no subject'!r}"
            )
        return made


def check_claims(token: Jwt, *, now: float) -> None:
    """Check what the service checks of every token, whatever its subject. Raises CredentialError.

    `now` is this machine's clock in Unix seconds.
    """
    expires_at = token.claims.get("exp")
    if not isinstance(expires_at, int):
        raise CredentialError("the token has no end (`exp`): it was asked for with one")
    if expires_at <= now:
        raise CredentialError(
            f"the token had expired {now - expires_at:.0f} s ago when it was made", hint=_COMPARE
        )


def check_begun(token: Jwt, *, now: float) -> None:
    """Check that a token is valid already, as far as servers are exact. Raises CredentialError."""
    ahead_s = _begins_in_s(token, now)
    if ahead_s > NOTABLE_SKEW_S:
        raise CredentialError(f"the token begins {ahead_s:.0f} s from now", hint=_COMPARE)


def _begins_in_s(token: Jwt, now: float) -> float:
    """Return in how many seconds a token begins; 0 where it does not say."""
    issued_at = token.claims.get("iat")
    return issued_at - now if isinstance(issued_at, int) else 0.0


def _issuer_uuid(token: Jwt) -> UUID | None:
    """Return the device UUID in `iss` (`<chip>.<uuid>` or bare), None for anything else."""
    return _uuid(str(token.claims.get("iss", "")).rpartition(".")[2])


def _uuid(text: str) -> UUID | None:
    """Return the UUID of a text in the one form that `iss` has, with hyphens."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None


_KEY_NOT_FOUND = 513


def ask_modem(modem: Modem, security_tag: int) -> AskModem:
    """Return a function that has a kit sign tokens with the private key in `security_tag`.

    A kit without one there signs with its device identity key, which may be registered as well:
    provisioning is not the only way to register a key.
    """

    async def ask(subject: str, life_s: int) -> Jwt:
        try:
            return await modem.send(MakeJwt(subject, "", life_s, security_tag))
        except CommandRejected as refusal:
            if refusal.code != _KEY_NOT_FOUND:
                raise
        return await modem.send(MakeJwt(subject, "", life_s))

    return ask
