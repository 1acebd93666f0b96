"""The modem firmware: its version text, and the gate before calls in the kit's name (D1.3).

Grammar, as Nordic names its releases: mfw[-<variant>]_<chip>[-<variant>]_<x.y.z>[-<suffix>].
Numbers are compared as numbers. A text that cannot be read is refused: it proves no version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from at.protocol.errors import FirmwareRefused, ParseError

MINIMUM = (1, 3, 0)

_VERSION = re.compile(r"(?<![^-_])[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![^-_])", re.ASCII)
_TEXT = re.compile(r"(?:mfw(?:-(?P<family>[a-z0-9+-]+))?_)?(?P<chip>nrf[0-9a-z]+)", re.ASCII)
_SHAPE = re.compile(r"[A-Za-z0-9_.+-]{1,80}", re.ASCII)
# Rebuilt from the same release, to try an update against.
_SAME_RELEASE = "fota-test"
_UPDATE = (
    "update the modem firmware to mfw 1.3.0 or later with the maker's programmer, "
    "then run `cellagent modem check`"
)


@dataclass(frozen=True, slots=True)
class Firmware:
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


@dataclass(frozen=True, slots=True)
class FirmwareVerdict:
    """Whether a modem may make calls in its own name. `note` explains an unusual permission."""

    allowed: bool
    text: str
    reason: str = ""
    hint: str = ""
    note: str = ""


def read_firmware(text: str) -> Firmware:
    """Return the parts of the text that +CGMR answers. Raises ParseError."""
    text = text.strip()
    versions = list(_VERSION.finditer(text))
    match = _TEXT.match(text.lower())
    if match is None or len(versions) != 1 or not _SHAPE.fullmatch(text):
        raise ParseError("the modem's answer to AT+CGMR is not a firmware version")
    version = versions[0]
    if version.start() < match.end():
        raise ParseError("the modem's answer to AT+CGMR names no version behind the chip")
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


def gate(version_text: str) -> FirmwareVerdict:
    """Return whether this firmware may make device calls; if not, why and what to try."""
    text = version_text.strip()
    try:
        firmware = read_firmware(text)
    except ParseError:
        shown = text[:60] or "nothing"
        return FirmwareVerdict(
            False,
            text,
            f"the modem's firmware cannot be told from its answer to AT+CGMR ({shown!r})",
            "send `cellagent modem at AT+CGMR`; if it names no mfw version, "
            "another line or another device answered",
        )
    if "nr+" in text.lower():
        return FirmwareVerdict(
            False,
            text,
            f"{text} is a DECT NR+ image: it has no cellular commands",
            "program a cellular modem firmware (mfw_nrf91x1_2.x) into the kit",
        )
    if _is_variant(firmware, "pti"):
        return FirmwareVerdict(
            False,
            text,
            f"{text} is a production test image, not meant for use",
            "program a released modem firmware (mfw_nrf91x1_2.x) into the kit",
        )
    if _is_variant(firmware, "ntn"):
        note = f"{text} restarted its version numbers; the rule of 1.3.0 does not apply to it"
        return FirmwareVerdict(True, text, note=note)
    if firmware.at_least(MINIMUM):
        return FirmwareVerdict(True, text)
    if firmware.version == MINIMUM:
        reason = f"{text} is a pre-release of 1.3.0; device calls need 1.3.0 itself or later"
    else:
        version = ".".join(str(number) for number in firmware.version)
        reason = f"modem firmware {version} ({text}) is older than 1.3.0, which device calls need"
    return FirmwareVerdict(False, text, reason, _UPDATE)


def require(version_text: str) -> FirmwareVerdict:
    """Return the verdict of `gate` if it allows. Raises FirmwareRefused."""
    verdict = gate(version_text)
    if not verdict.allowed:
        raise FirmwareRefused(verdict.reason, hint=verdict.hint)
    return verdict


def _is_variant(firmware: Firmware, word: str) -> bool:
    return any(word in re.split(r"[-_]", variant) for variant in firmware.variants)
