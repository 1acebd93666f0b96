"""A board: its location, its state, and what its credentials are written by."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from agent.errors import AgentError, RefusedByRule

T = TypeVar("T")
_LONGEST_COMMAND_S = 60.0


class BoardLocation(Struct, frozen=True):
    """Where a board is connected.

    `serial` is its kit's serial number, `usb_place` its port on the hub, `slot` the operator's name
    for that; "" where not known. `port` is what a modem is opened by.
    """

    serial: str
    usb_place: str
    slot: str
    port: str


class HeldCredential(Struct, frozen=True):
    """One line of the modem's list: security tag, type, and SHA-256 in upper-case hex."""

    tag: int
    type: int
    sha256: str


class BoardState(Struct, frozen=True):
    """A board's state. `refusal` is the firmware gate's reason, "" when it may go on.

    `mode` is +CFUN's functional mode. `has_time`: the modem knows the time.
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
    has_client: bool = False
    """It has a provisioning client, with which it takes the service's commands itself."""
    attested: bool = False
    """A key that the profile names signed what the board attests; False: that was not checked."""
    module_key: str = ""
    """PEM of the public key of an nRF93M1, which holds its one key itself; "" for an nRF91."""

    def held(self, tag: int, kind: int) -> HeldCredential | None:
        """Return the credential of a tag and type, None where there is none."""
        for credential in self.credentials:
            if (credential.tag, credential.type) == (tag, kind):
                return credential
        return None


class WrongAnswer(AgentError):
    """The board carried out a command, but the digest or signature that it shows is wrong."""

    kind = "wrong-answer"


class MadeKey(Struct, frozen=True):
    """A key that was made on the modem.

    `public_pem` is its public half, `uuid` the device that attests it ("" where the modem signs no
    attestation), and `proof` a sentence about what was verified and what was not.
    """

    public_pem: str
    uuid: str
    proof: str


class CredentialStore(Protocol):
    """What writes the credentials of a board. Every method raises at.AtError."""

    async def credentials(self) -> Sequence[HeldCredential]:
        """Return the list of the credential store."""

    async def write(self, tag: int, kind: int, content: str) -> None:
        """Write a credential, these bytes exactly."""

    async def delete(self, tag: int, kind: int) -> None:
        """Delete a credential."""

    async def make_key(self, tag: int) -> MadeKey:
        """Make a key in the modem. Raises WrongAnswer when its proof does not hold."""


class BoardSwapped(RefusedByRule):
    """The board on this port is not the one that the run began with."""

    kind = "swapped"


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. Cancelled meanwhile, wait for its end first: no command is left half done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Nobody awaits it now, nor after a second cancel: asyncio would print its failure.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({task}, timeout=_LONGEST_COMMAND_S)
        raise
