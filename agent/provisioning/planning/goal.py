"""The goal: the credentials and settings that a provisioned board has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agent.provisioning.boards.board import BoardState
from agent.provisioning.boards.limits import Limit
from at.commands.credentials import CredentialType

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_LONGEST_PREFIX = 49  # with an IMEI the 64 characters that a certificate has for its name
_ID_PREFIX = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:-]{{0,{_LONGEST_PREFIX - 1}}}")
CREDENTIAL_NAMES: Mapping[int, str] = {
    CredentialType.ROOT_CA: "CA chain",
    CredentialType.CLIENT_CERTIFICATE: "client certificate",
    CredentialType.CLIENT_PRIVATE_KEY: "private key",
}
"""The credentials that provisioning writes and deletes, and what they are called."""


class KeyOrigin(Enum):
    """Where the board's private key is made."""

    MODEM = "modem"
    """By %KEYGEN; it never leaves the modem."""
    HOST = "host"
    """On this computer, only on request: whoever reads its file can speak for the board."""


class CertificateSource(Enum):
    """Which certificate the board gets."""

    OPERATOR_CA = "operator-ca"
    """Signed by the operator's CA from the modem's CSR."""
    SELF_SIGNED = "self-signed"
    """Signed by the board's own key: possible with a host key alone."""
    NONE = "none"
    """None: the registered public key is enough for JWTs."""


class RegistrationMethod(Enum):
    """How the board's key is registered at the service."""

    PUBLIC_KEY = "public-key"
    ONBOARD = "onboard"
    CLAIM = "claim"
    """The device joins the team; with a proof its kit then takes what it is to hold by commands."""
    ATTESTATION = "attestation"
    """The device joins a project by its attestation token, and the service gets no key of it."""
    TOKEN = "token"
    """The one way of an nRF93M1, whatever is asked for the others: a token that it signs itself."""
    NONE = "none"

    @property
    def gives_key(self) -> bool:
        """Whether this alone gives the service the board's key, the only one for the device."""
        return self in {
            RegistrationMethod.PUBLIC_KEY,
            RegistrationMethod.ONBOARD,
            RegistrationMethod.TOKEN,
        }


class Goal(Struct, frozen=True):
    """The credentials and settings of a provisioned board.

    `ca_chain` is the text that is written as the root CA, "" for none. `replace` names the
    credentials, by tag and type, that may be deleted. `id_prefix` "" makes the modem's UUID the
    device id; else it is prefix + IMEI ("nrf-"). `set_clock` sets the modem's clock from
    this host's: without a network and a clock, a modem makes no JWT with an expiry.

    Raises ValueError where the parts do not fit together, or no device id can begin with the
    prefix.
    """

    security_tag: int
    ca_chain: str = ""
    key_origin: KeyOrigin = KeyOrigin.MODEM
    certificate: CertificateSource = CertificateSource.NONE
    registration: RegistrationMethod = RegistrationMethod.PUBLIC_KEY
    into: str = ""
    """ORGANIZATION/PROJECT that the boards come into, "" for the team of the API key."""
    replace: frozenset[tuple[int, int]] = frozenset()
    id_prefix: str = ""
    set_clock: bool = False
    limits: tuple[Limit, ...] = ()
    """What a board must keep before it is written to or registered."""
    certificate_life: timedelta = timedelta(days=3650)
    ca: Certificate | None = None
    """The operator's CA, which is to have issued the certificates."""
    ca_ends: datetime | None = None
    """When the operator's CA ends, and its certificates with it, if that is before their life."""
    prove: bool = True
    """Whether the cloud must accept a JWT of the board, as the last step."""
    rekey: bool = False
    """Whether another key may take the place of the ledger's key of this tag."""
    second_tag: bool = False
    """Whether this tag's key may take the place of the board's key in another tag."""
    take_over: frozenset[str] = frozenset()
    """The device ids that a board may have although another board of the ledger has them."""

    def __post_init__(self) -> None:
        if self.id_prefix and not _ID_PREFIX.fullmatch(self.id_prefix):
            raise ValueError(
                f"a device id cannot begin with {self.id_prefix!r}: a prefix is at most "
                f"{_LONGEST_PREFIX} letters (a-z), digits and . _ : -, the first of them a letter "
                "or a digit, as nrf-"
            )
        if self.key_origin is KeyOrigin.MODEM and self.certificate is CertificateSource.SELF_SIGNED:
            raise ValueError("a modem's own key signs no certificate: use operator-ca or none")
        if self.registration is RegistrationMethod.ATTESTATION and self.id_prefix:
            raise ValueError("an attestation token names a board by its UUID: no --id-prefix")
        if self.takes_commands and self.key_origin is KeyOrigin.HOST:
            raise ValueError("a claimed kit makes its key itself: leave out --host-key")

    @property
    def takes_commands(self) -> bool:
        """Whether the kit is given its credentials by the service's provisioning commands."""
        return self.registration is RegistrationMethod.CLAIM and self.prove

    @property
    def gives_key(self) -> bool:
        """Whether the service gets the board's key in the end."""
        return self.registration.gives_key or self.takes_commands

    @property
    def registered_by(self) -> str:
        """The ledger's name of the way: the method, and the project that it leads into."""
        is_none = self.registration is RegistrationMethod.NONE
        into = f" into {self.into}" if self.into and not is_none else ""
        return f"{self.registration.value}{into}"

    @property
    def onboards(self) -> bool:
        """Whether the service is given the device, with its certificate where it has one."""
        return self.registration is RegistrationMethod.ONBOARD or self.takes_commands

    def of(self, board: BoardState) -> Goal:
        """Return the goal of this board: nothing is written to an nRF93M1, which has its key."""
        if not board.module_key:
            return self
        asks = self.registration is not RegistrationMethod.NONE
        return replace(
            self,
            ca_chain="",
            key_origin=KeyOrigin.MODEM,
            certificate=CertificateSource.NONE,
            registration=RegistrationMethod.TOKEN if asks else RegistrationMethod.NONE,
            replace=frozenset(),
            id_prefix="",  # the service knows it by its UUID alone
        )

    def device_id(self, uuid: str, imei: str) -> str:
        """Return the device's id at the cloud."""
        return f"{self.id_prefix}{imei}" if self.id_prefix else uuid
