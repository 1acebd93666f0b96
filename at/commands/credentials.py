"""The modem's credential store: %CMNG (Nordic's AT reference).

The digest is of the exact bytes written.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from hashlib import sha256
from typing import Annotated, ClassVar

from at.protocol.command import Command, OkCommand, Parameters, at_command
from at.protocol.encoding import quoted
from at.protocol.errors import ParseError, UnsafeArgument
from at.protocol.record_fields import record, within
from at.protocol.values import Fields, Record, read_rows

HIGHEST_TAG = 2**31 - 1
"""Larger tags belong to the modem: listed, never written or deleted."""
_CONTROLS = re.compile(r"[\x00-\x1f]+")


class CredentialType(IntEnum):
    """<type> of %CMNG."""

    ROOT_CA = 0
    CLIENT_CERTIFICATE = 1
    CLIENT_PRIVATE_KEY = 2
    PSK = 3
    PSK_IDENTITY = 4
    PUBLIC_KEY = 5
    DEVICE_IDENTITY_PUBLIC_KEY = 6
    RESERVED = 7
    ENDORSEMENT_KEY = 8
    OWNERSHIP_KEY = 9
    NORDIC_IDENTITY_ROOT_CA = 10
    NORDIC_PUBLIC_KEY = 11


def _sha(fields: Fields, name: str) -> str | None:
    sha = fields.optional_quoted(name)
    if sha is not None and not re.fullmatch(r"[0-9A-Fa-f]{64}", sha, re.ASCII):
        raise fields.fail(name, "is not 64 hex digits")
    return sha


class ListedCredential(Record, frozen=True):
    """An entry of the list; `sha` is SHA-256 in upper-case hex, of the bytes between the quotes."""

    sec_tag: Annotated[int, within(0, 2**32 - 1)]
    type: Annotated[int, within(0, 255)]
    sha: Annotated[str | None, _sha] = None


class StoredCredential(ListedCredential, frozen=True):
    """An item with its content; a private key never has one."""

    content: Annotated[str, Fields.quoted] = ""

    def __repr__(self) -> str:
        """Leave the content out: it may be a pre-shared key."""
        return f"StoredCredential(sec_tag={self.sec_tag}, type={self.type}, sha={self.sha!r})"


class CredentialList(Record, frozen=True):
    """Answer of %CMNG=1 and %CMNG=2."""

    credentials: tuple[ListedCredential, ...]


@at_command("AT%CMNG=1")
class ListCredentials(Command[CredentialList], frozen=True):
    """AT%CMNG=1[,<tag>[,<type>]]: allowed at any time."""

    sec_tag: int | None = None
    type: int | None = None

    def parse(self, lines: Sequence[str]) -> CredentialList:
        """Return the items; () when there are none."""
        single = [part for line in lines for part in _CONTROLS.split(line)]
        return CredentialList(read_rows(single, self.name, record(ListedCredential)))


@at_command("AT%CMNG=2")
class ReadCredential(Command[CredentialList], frozen=True):
    """AT%CMNG=2,<tag>,<type>: error 514 for what may not be read, such as a private key."""

    sec_tag: int
    type: int

    def parse(self, lines: Sequence[str]) -> CredentialList:
        """Return the item with its content, which may span lines."""
        items = read_rows(lines, self.name, record(StoredCredential))
        if len(items) != 1:
            raise ParseError(f"{self.name}: {len(items)} items where one must stand")
        return CredentialList(items)


@at_command("AT%CMNG=0")
class WriteCredential(OkCommand, frozen=True):
    """AT%CMNG=0: not while LTE is on (518). `content` is written as it is: its line ends count."""

    sec_tag: int
    type: int
    content: str

    multiline: ClassVar[bool] = True

    def __repr__(self) -> str:
        """Leave the content out: it may be a key."""
        return f"WriteCredential(sec_tag={self.sec_tag}, type={self.type})"

    def encode(self) -> str:
        """Return the command with the content in one quoted text."""
        check_tag(self.sec_tag)
        return f"AT%CMNG=0,{self.sec_tag},{int(self.type)},{quoted(self.content, multiline=True)}"

    @property
    def sha(self) -> str:
        """The digest that the modem will list for it."""
        return sha256_of(self.content)


@at_command("AT%CMNG=3")
class DeleteCredential(OkCommand, frozen=True):
    """AT%CMNG=3: not while LTE is on (518); 513, nothing was there, counts as done."""

    sec_tag: int
    type: int

    def parameters(self) -> Parameters:
        """Return operation, tag and type."""
        check_tag(self.sec_tag)
        return Command.parameters(self)


def sha256_of(content: str | bytes) -> str:
    """Return the digest as %CMNG lists it: of the exact bytes, in upper-case hex."""
    data = content.encode() if isinstance(content, str) else content
    return sha256(data).hexdigest().upper()


def check_tag(sec_tag: int) -> None:
    """Raise UnsafeArgument for a tag that a host may not write, delete or make a key under."""
    if not 0 <= sec_tag <= HIGHEST_TAG:
        raise UnsafeArgument(
            f"the tag {sec_tag} is not in 0..{HIGHEST_TAG}: larger ones belong to the modem"
        )
