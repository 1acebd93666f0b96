"""A board: its location, its state, its operations, and the check of its identity."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct

from agent.errors import AgentError, RefusedByRule
from agent.provisioning.boards.limits import Quantity
from at.tokens.jwt import Jwt

if TYPE_CHECKING:
    from at.causes.diagnosis import Cause

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

    async def make_key(self, tag: int, subject: str) -> MadeKey:
        """Make a key in the modem. Raises WrongAnswer when its proof does not hold."""


class BoardPort(CredentialStore, Protocol):
    """An open board. Every method raises at.AtError; reading changes nothing."""

    async def read(self) -> BoardState:
        """Return the identity and the credentials of the board."""

    async def require_attested(self, uuid: str) -> bool:
        """Check that the board attests this UUID; return False where there is no key to check with.

        Raises UntrustedSignature, BoardSwapped.
        """

    async def imei(self) -> str:
        """Return the IMEI, read now: it tells whether this is still the same board."""

    async def require_firmware(self) -> None:
        """Raise at.FirmwareRefused where no call may be made in the board's name."""

    async def certificate(self, tag: int) -> str:
        """Return the client certificate of a tag as PEM, "" where the modem does not show it."""

    async def measure(self, quantity: Quantity) -> int | None:
        """Return a quantity in its unit, None where the modem does not know it."""

    async def cause(self) -> "Cause | None":
        """Return why the modem does not do its work, None where it shows no trouble."""

    async def judged_key(self, text: str, tag: int) -> MadeKey:
        """Return the key of another's record of %KEYGEN's answer. Raises WrongAnswer as above."""

    async def token(self, subject: str, life_s: int, tag: int) -> Jwt:
        """Return a JWT signed by the key in a tag; without `sub` where `subject` is ""."""

    async def attestation(self) -> str:
        """Return the attestation token, which claims the device for a team."""

    async def registration_token(self, uuid: str, team_id: str) -> str:
        """Return the token by which an nRF93M1 names its team; it opens nothing after an hour.

        Raises NoModemTime, and WrongAnswer where it is not of this board for this team.
        """

    async def set_mode(self, mode: int) -> None:
        """Set the functional mode, and wait until the modem has taken it. Raises WrongAnswer."""

    async def go_online(self) -> None:
        """Turn the radio on, and wait for the network. Raises ProvisioningFailed."""

    async def take_commands(self, *, was_left: bool) -> None:
        """Have the board take the service's commands. Raises ProvisioningFailed.

        `was_left`: it may still be about it with a run that was cut off.
        """

    async def set_clock(self, now: datetime) -> None:
        """Set the modem's clock. Raises WrongAnswer."""


class BoardSwapped(RefusedByRule):
    """The board on this port is not the one that the run began with."""

    kind = "swapped"


class IdentityCheck:
    """Tells whether the board behind `port` is still the one with this IMEI."""

    def __init__(self, port: BoardPort, imei: str) -> None:
        self._port = port
        self._imei = imei

    async def require_same(self, when: str) -> None:
        """Read the IMEI again. Raises BoardSwapped, naming `when`, where it is another one."""
        found = await self._port.imei()
        if found != self._imei:
            raise BoardSwapped(
                f"IMEI {self._imei} became {found} at {when}",
                hint="put the board back and run again: what was done is in the ledger",
            )


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. Cancelled meanwhile, wait for its end first: no command is left half done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_LONGEST_COMMAND_S)
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it: nobody awaits it now
        raise
