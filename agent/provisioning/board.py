"""What a board is and holds, as read from it before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent.errors import AgentError


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """One line of the modem's list: where it is, what it is, and its SHA-256 in upper-case hex."""

    tag: int
    type: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BoardState:
    """A board's state. `refusal` is the firmware gate's reason, "" when it may go on.

    `mode` is +CFUN's functional mode. `has_time` tells whether the modem knows the time.
    """

    imei: str
    uuid: str
    model: str
    firmware: str
    refusal: str
    mode: int
    has_time: bool
    credentials: tuple[HeldCredential, ...]
    certificate_algorithm: str = ""
    """"RSA" or "EC": the key of a client certificate that could be read; "" where none could."""

    def held(self, tag: int, kind: int) -> HeldCredential | None:
        """Return what stands in a place of the credential store."""
        for credential in self.credentials:
            if (credential.tag, credential.type) == (tag, kind):
                return credential
        return None


class WrongAnswer(AgentError):
    """The board did what was asked, but what it shows does not fit: a digest, a signature."""

    kind = "wrong-answer"


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A key that was made on the modem.

    `public_pem` is its public half, `uuid` the device that says so ("" where the modem signs no
    such statement), and `proof` in a person's words what was verified and what was not.
    """

    public_pem: str
    uuid: str
    proof: str


class BoardPort(Protocol):
    """One board. Every method raises at.AtError; reading changes nothing."""

    async def read(self) -> BoardState:
        """Return what the board is and holds."""

    async def imei(self) -> str:
        """Return the IMEI, read now: it tells whether this is still the same board."""

    async def credentials(self) -> tuple[HeldCredential, ...]:
        """Return the list of the credential store."""

    async def certificate(self, tag: int) -> str:
        """Return the client certificate of a tag as PEM, "" where the modem does not show it."""

    async def write(self, tag: int, kind: int, content: str) -> None:
        """Write a credential, these bytes exactly."""

    async def delete(self, tag: int, kind: int) -> None:
        """Delete a credential."""

    async def make_key(self, tag: int, subject: str) -> MadeKey:
        """Make a key in the modem. Raises WrongAnswer when its proof does not hold."""

    async def token(self, subject: str, life_s: int, tag: int) -> str:
        """Return a JWT signed by the key in a tag; without `sub` where `subject` is ""."""

    async def attestation(self) -> str:
        """Return the attestation token, which claims the device for a team."""

    async def set_mode(self, mode: int) -> None:
        """Set the functional mode, and wait until the modem has taken it."""

    async def set_clock(self, now: datetime) -> None:
        """Set the modem's clock."""
