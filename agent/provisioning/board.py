"""What a board is and holds, as read from it before anything is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """One line of the modem's list: where it is, what it is, and its SHA-256 in upper-case hex."""

    tag: int
    type: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Board:
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
