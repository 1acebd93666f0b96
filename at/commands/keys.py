"""Keys that the modem makes and keeps: %KEYGEN %ATTESTTOKEN (Nordic's AT reference)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from at.commands.credentials import CredentialType, check_tag
from at.protocol.command import Command, Parameters, at_command
from at.protocol.errors import UnsafeArgument
from at.protocol.values import Fields

if TYPE_CHECKING:
    from at.tokens.attestation import AttestationToken, GeneratedKey


@at_command("AT%KEYGEN=")
class GenerateKey(Command["GeneratedKey"], frozen=True):
    """AT%KEYGEN=<sec_tag>,<key_type>,<response_content>[,<attributes>[,<key_usage>]].

    `key_type` is CLIENT_PRIVATE_KEY (2) or ENDORSEMENT_KEY (8); `response_content` 0 asks for a
    signing request, 1 for the public key. Only while LTE is off (518); the tag must be free (519).
    """

    sec_tag: int
    key_type: int = CredentialType.CLIENT_PRIVATE_KEY
    response_content: int = 0
    attributes: str | None = None
    key_usage: str | None = None

    def parameters(self) -> Parameters:
        """Return tag, type, content, attributes and usage."""
        check_tag(self.sec_tag)
        own = (self.attributes, self.key_usage)
        return (self.sec_tag, self.key_type, self.response_content, *own)

    def read(self, fields: Fields) -> GeneratedKey:
        """Return the request or key, with what the modem signed about it."""
        from at.tokens.attestation import read_generated_key  # pulls in cryptography

        return read_generated_key(fields.text("the answer"))


@at_command("AT%ATTESTTOKEN")
class ReadAttestation(Command["AttestationToken"], frozen=True):
    """AT%ATTESTTOKEN."""

    def read(self, fields: Fields) -> AttestationToken:
        """Return the token."""
        from at.tokens.attestation import read_attestation  # pulls in cbor2

        return read_attestation(fields.text("the answer"))


@at_command("AT%ATTESTTOKEN=")
class ReadChallengedAttestation(ReadAttestation, frozen=True):
    """AT%ATTESTTOKEN="<challenge>": 16 bytes in hex take the place of the device's nonce."""

    challenge: str = ""

    def parameters(self) -> Parameters:
        """Return the challenge."""
        if not re.fullmatch(r"[0-9A-Fa-f]{32}", self.challenge, re.ASCII):
            raise UnsafeArgument("a challenge is 32 hex digits")
        return (self.challenge,)
