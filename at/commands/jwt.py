"""A token signed by the modem: %JWT (Nordic's AT reference).

It needs firmware 1.3.0, and the time for an expiry.
"""

from collections.abc import Sequence
from typing import Self

from at.commands.credentials import CredentialType, check_tag
from at.protocol.command import Command, Parameters, at_command
from at.protocol.errors import NoModemTime, UnsafeArgument
from at.protocol.values import Fields, Value
from at.tokens.jwt import Jwt, read_jwt

NO_TIME = (
    "`cellagent modem on` waits for a network, which may tell it; or set its clock: `cellagent "
    """modem at "$(date -u '+AT+CCLK="%y/%m/%d,%H:%M:%S+00"')"`"""
)
_SIGNING_KEYS = {CredentialType.CLIENT_PRIVATE_KEY, CredentialType.ENDORSEMENT_KEY}


@at_command("AT%JWT=")
class MakeJwt(Command[Jwt], frozen=True):
    """AT%JWT=0,<exp_delta>,<sub>,<aud>[,<sec_tag>,<key_type>].

    `exp_delta_s` None asks for a token without expiry. Without `sec_tag` the device's identity
    key signs; with it `key_type` is CLIENT_PRIVATE_KEY (2) or ENDORSEMENT_KEY (8).
    """

    subject: str = ""
    audience: str = ""
    exp_delta_s: int | None = None
    sec_tag: int | None = None
    key_type: int = CredentialType.CLIENT_PRIVATE_KEY

    def parameters(self) -> Parameters:
        """Return algorithm, expiry, subject, audience, and the key if one is named."""
        if self.exp_delta_s is not None and self.exp_delta_s <= 0:
            raise UnsafeArgument("a token must live for at least one second")
        if self.sec_tag is None:
            return 0, self.exp_delta_s or 0, self.subject, self.audience
        check_tag(self.sec_tag)
        if self.key_type not in _SIGNING_KEYS:
            raise UnsafeArgument(f"key type {int(self.key_type)} signs no token: 2 or 8 does")
        key = (self.sec_tag, self.key_type)
        return (0, self.exp_delta_s or 0, self.subject, self.audience, *key)

    def read(self, fields: Fields) -> Jwt:
        """Return the token. Raises ParseError; NoModemTime if a requested expiry is missing."""
        token = read_jwt(fields.text("the token"))
        if self.exp_delta_s and "exp" not in token.claims:
            raise NoModemTime(
                "the modem made a token that never expires: it does not know the time", hint=NO_TIME
            )
        return token

    @classmethod
    def captured(cls, arguments: Sequence[Value]) -> Self | None:
        """Return one for any token; a requested expiry is checked."""
        text = arguments[1].text if len(arguments) > 1 else None
        asked = int(text) if text is not None and text.isascii() and text.isdecimal() else 0
        return cls(exp_delta_s=asked or None)


@at_command("AT%JWT")
class MakeDefaultJwt(Command[Jwt], frozen=True):
    """AT%JWT without parameters: no expiry, no subject, the identity key."""

    def read(self, fields: Fields) -> Jwt:
        """Return the token. Raises ParseError."""
        return read_jwt(fields.text("the token"))
