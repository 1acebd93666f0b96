"""The public keys that sign what modems attest, as `provisioning.attestation_keys` names them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from agent.errors import ConfigError, RefusedByRule
from agent.files.paths import named_path
from agent.files.private_files import read_plain
from at.protocol.errors import ParseError
from at.tokens.key_formats import load_public_keys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    from at.tokens.attestation import Signed

S = TypeVar("S", bound="Signed")
_KEY = "provisioning.attestation_keys"


class UntrustedSignature(RefusedByRule):
    """An answer of a modem that none of the keys signed which the profile names."""

    kind = "untrusted-signature"


class IdentityKeys(Struct, frozen=True):
    """The keys of the profile; `place` is the file or folder that holds them.

    Without a key, nothing is checked and nothing is refused.
    """

    keys: tuple[EllipticCurvePublicKey, ...] = ()
    place: str = ""

    def __bool__(self) -> bool:
        """Whether the profile names any key."""
        return bool(self.keys)

    def check(self, answer: S) -> S:
        """Return the answer of %KEYGEN or %ATTESTTOKEN with its signature checked."""
        return answer.checked_with(self.keys)

    def require(self, answer: S, what: str) -> S:
        """Return the answer, checked. Raises UntrustedSignature, which says `what` it signs."""
        checked = self.check(answer)
        if self.keys and not checked.verified:
            raise UntrustedSignature(
                f"the signature of {what} is {checked.reason or 'wrong'}",
                hint=f"is the device's identity key in {self.place} ({_KEY})? else keep the device "
                "apart: it may not be what it says",
            )
        return checked


def load_identity_keys(named: str) -> IdentityKeys:
    """Return the keys in a file, or in the *.pem and *.der files of a folder; "" names none.

    Raises ConfigError where a file holds anything but public keys on the curve P-256.
    """
    if not named:
        return IdentityKeys()
    path = named_path(named)
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix.lower() in {".pem", ".der"})
    else:
        files = [path]
    keys = tuple(key for file in files for key in _keys_in(file))
    if not keys:
        raise ConfigError(
            f"{_KEY}: the folder {path} holds no *.pem or *.der file",
            hint=f"put the public keys there; `cellagent config set {_KEY} ''` checks nothing",
        )
    return IdentityKeys(keys, str(path))


def _keys_in(file: Path) -> tuple[EllipticCurvePublicKey, ...]:
    try:
        return load_public_keys(read_plain(file, _KEY))
    except ParseError as wrong:
        raise ConfigError(
            f"{_KEY}: {file}: {wrong}",
            hint="it takes public keys alone, in PEM (BEGIN PUBLIC KEY) or DER, on the curve P-256",
        ) from wrong
