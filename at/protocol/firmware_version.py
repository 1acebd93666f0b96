"""The version text of the modem firmware, as +CGMR answers it: its grammar and its order.

Grammar, as Nordic names its releases: mfw[-<variant>]_<chip>[-<variant>]_<x.y.z>[-<suffix>].
Numbers are compared as numbers. A text that cannot be read is refused: it proves no version.
"""

import re

from msgspec import Struct

from at.protocol.errors import ParseError

_VERSION = re.compile(r"(?<![^-_])[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![^-_])", re.ASCII)
_TEXT = re.compile(r"(?:mfw(?:-(?P<family>[a-z0-9+-]+))?_)?(?P<chip>nrf[0-9a-z]+)", re.ASCII)
_SHAPE = re.compile(r"[A-Za-z0-9_.+-]{1,80}", re.ASCII)
# Rebuilt from the same release, to try an update against.
_SAME_RELEASE = "fota-test"


class Firmware(Struct, frozen=True):
    """A version text and its parts: "mfw_nrf9151-ntn_1.0.0-1.alpha" is ntn, (1, 0, 0)."""

    text: str
    chip: str
    variants: tuple[str, ...]
    version: tuple[int, int, int]
    suffix: str

    @property
    def prerelease(self) -> bool:
        """Whether it precedes its own release: "0.7.0-23.prealpha"."""
        return bool(self.suffix) and self.suffix.lower() != _SAME_RELEASE

    def at_least(self, wanted: tuple[int, int, int]) -> bool:
        """Return whether this is `wanted` or later; a pre-release of `wanted` itself is not."""
        if self.version == wanted:
            return not self.prerelease
        return self.version > wanted


def read_firmware(text: str) -> Firmware:
    """Return the parts of the text that +CGMR answers. Raises ParseError."""
    text = text.strip()
    versions = list(_VERSION.finditer(text))
    match = _TEXT.match(text.lower())
    if match is None or len(versions) != 1 or not _SHAPE.fullmatch(text):
        raise ParseError("the modem's answer to AT+CGMR is not a firmware version")
    version = versions[0]
    numbers = version.group().split(".")
    if any(number[0] == "0" and number != "0" for number in numbers):
        # No release is written so: a digit was lost or doubled on the line.
        raise ParseError("a number of the firmware version begins with a zero")
    between = text[match.end() : version.start()].strip("-_")
    variants = [word for word in (match["family"], between) if word]
    x, y, z = map(int, numbers)
    return Firmware(
        text=text,
        chip=match["chip"],
        variants=tuple(word.lower() for word in variants),
        version=(x, y, z),
        suffix=text[version.end() :].lstrip("-_"),
    )
