"""nRF93M1: %CLOUDACCESSKEY %REGJWT %ICCID %BAND %POWD %SLEEPMODE (its AT reference)."""

import binascii
from base64 import b64decode
from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, ClassVar

from at.commands.identity import last_told, uuid_text
from at.commands.sim import card_number
from at.commands.system_mode import HIGHEST_BAND
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.errors import ParseError
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import listed, record, within
from at.protocol.values import PartlyHidden, Record, read_row, single_line
from at.tokens.jwt import read_jwt

# DER of a SubjectPublicKeyInfo with an uncompressed point of P-256, up to the point (RFC 5480).
_P256_HEADER = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_P256_BYTES = 91


class CloudAccessKey(Record, frozen=True):
    """Answer of %CLOUDACCESSKEY: the device's public key, base64 of DER; it is no secret."""

    public_key: str

    derived: ClassVar[tuple[str, ...]] = ("sha256",)

    @property
    def sha256(self) -> str:
        """Hex SHA-256 of the key in DER."""
        return sha256(b64decode(self.public_key)).hexdigest()


class RegistrationToken(PartlyHidden, frozen=True):
    """Answer of %REGJWT. The token is a secret for an hour: it shows in no repr and no JSON."""

    header: dict[str, object]
    claims: dict[str, object]
    token: str = ""

    derived: ClassVar[tuple[str, ...]] = ("device_uuid", "team_id")
    hidden: ClassVar[frozenset[str]] = frozenset({"token"})

    @property
    def device_uuid(self) -> str:
        """The device that it registers."""
        return str(self.claims["sub"])

    @property
    def team_id(self) -> str:
        """The team that it registers the device for."""
        return str(self.claims["id"])


class Iccid(Record, frozen=True):
    """Answer of %ICCID: as it is, some end in F."""

    iccid: Annotated[str, card_number]


class SupportedBands(Record, frozen=True):
    """Answer of %BAND=?."""

    bands: Annotated[tuple[int, ...], listed(1, HIGHEST_BAND)]


class SleepMode(Record, frozen=True):
    """%SLEEPMODE: 0 on, 2 on and idle, saving power, 3 on and in deep idle, 4 off."""

    mode: Annotated[int, within(0, 4)]


class SleepModeNotice(Notice, frozen=True):
    """%SLEEPMODE, to which nobody subscribes."""

    value: SleepMode


@at_command("AT%CLOUDACCESSKEY")
class ReadCloudAccessKey(Command[CloudAccessKey], frozen=True):
    """AT%CLOUDACCESSKEY: the first use makes the key, and says so on a line before it."""

    def parse(self, lines: Sequence[str]) -> CloudAccessKey:
        """Return the key. Raises ParseError unless it is one of P-256."""
        text = last_told(lines, self.name)
        try:
            der = b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ParseError(f"{self.name}: the answer is not base64") from None
        if len(der) != _P256_BYTES or not der.startswith(_P256_HEADER):
            raise ParseError(f"{self.name}: the answer is no public key on P-256")
        return CloudAccessKey(text)


@at_command("AT%REGJWT=")
class MakeRegistrationToken(Command[RegistrationToken], frozen=True):
    """AT%REGJWT="<team id>": needs a valid time; the service takes the token for an hour."""

    team_id: str
    wraps: ClassVar[bool] = True

    def parse(self, lines: Sequence[str]) -> RegistrationToken:
        """Return the token, which may stand on the line behind the name. Raises ParseError."""
        filled = [line.strip() for line in lines if line.strip()]
        if len(filled) == 2 and filled[0].rstrip(": \t").upper() == self.name:
            filled = [f"{self.name}: {filled[1]}"]
        line = single_line(filled, self.name)
        token = read_row(line, self.name, lambda row: row.text("the token"))
        return read_registration_token(token)


@at_command("AT%ICCID")
class ReadIccid(Command[Iccid], frozen=True):
    """AT%ICCID: the SIM's number, 18 to 20 digits."""


@at_command("AT%BAND=?")
class TestBands(Command[SupportedBands], frozen=True):
    """AT%BAND=?: the bands that the module supports."""


@at_command("AT%POWD=")
class PowerDown(OkCommand, frozen=True):
    """AT%POWD=1: the line POWERED DOWN follows OK, and then nothing."""

    mode: int = 1


def read_registration_token(token: str) -> RegistrationToken:
    """Return what a token says. Raises ParseError, which shows no part of it."""
    read = read_jwt(token)
    if read.header.get("typ") != "JWT":
        raise ParseError("the token's header is not of typ JWT")
    team = read.claims.get("id")
    if not isinstance(team, str) or not team:
        raise ParseError("the token names no team")
    uuid_text(str(read.claims.get("sub", "")), "the token's sub")
    return RegistrationToken(read.header, read.claims, read.token)


register_readers(SleepModeNotice, {"%SLEEPMODE": record(SleepMode)})
