"""The firmware gate: whether a modem's firmware may make calls in the kit's name (D1.3)."""

import re

from msgspec import Struct

from at.commands.identity import ReadRevision
from at.driver.modem import Modem
from at.protocol.errors import CommandRejected, FirmwareRefused, ParseError
from at.protocol.firmware_version import Firmware, read_firmware

_MINIMUM = (1, 3, 0)  # of the nRF91: the versions of another chip are counted by themselves
_CHIPS_WITHOUT_A_RULE = frozenset({"nrf93m1"})

_UPDATE = (
    "update the modem firmware to mfw 1.3.0 or later with the maker's programmer, "
    "then run `cellagent modem check`"
)


class FirmwareVerdict(Struct, frozen=True):
    """Whether calls may be made in a modem's name.

    `older` where it is refused as older than 1.3.0, and not for another reason. `note` explains
    an unusual permission.
    """

    allowed: bool
    text: str
    reason: str = ""
    hint: str = ""
    note: str = ""
    older: bool = False

    def require(self) -> None:
        """Raise FirmwareRefused where no call may be made in the modem's name."""
        if not self.allowed:
            raise FirmwareRefused(self.reason, hint=self.hint)


def firmware_verdict(version_text: str) -> FirmwareVerdict:
    """Return whether this firmware may make device calls; if not, why and what to try."""
    text = version_text.strip()
    try:
        firmware = read_firmware(text)
    except ParseError:
        return _unreadable(text, repr(text[:60] or "nothing"))
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
    if firmware.chip in _CHIPS_WITHOUT_A_RULE:
        note = f"{text} is of another chip than the nRF91; the rule of 1.3.0 does not apply to it"
        return FirmwareVerdict(True, text, note=note)
    if firmware.at_least(_MINIMUM):
        return FirmwareVerdict(True, text)
    if firmware.version == _MINIMUM:
        reason = f"{text} is a pre-release of 1.3.0; device calls need 1.3.0 itself or later"
    else:
        version = ".".join(str(number) for number in firmware.version)
        reason = f"modem firmware {version} ({text}) is older than 1.3.0, which device calls need"
    return FirmwareVerdict(False, text, reason, _UPDATE, older=True)


async def read_verdict(modem: Modem) -> FirmwareVerdict:
    """Return the verdict on the modem's firmware; one that tells no version is refused."""
    try:
        return firmware_verdict((await modem.send(ReadRevision())).revision)
    except (CommandRejected, ParseError) as error:
        return _unreadable("", str(error))


async def require_firmware(modem: Modem) -> None:
    """Raise FirmwareRefused where the modem's firmware may make no device calls."""
    (await read_verdict(modem)).require()


def _unreadable(text: str, answer: str) -> FirmwareVerdict:
    return FirmwareVerdict(
        False,
        text,
        f"the modem's firmware cannot be told from its answer to AT+CGMR ({answer})",
        "send `cellagent modem at AT+CGMR`; if it names no mfw version, "
        "another line or another device answered",
    )


def _is_variant(firmware: Firmware, word: str) -> bool:
    return any(word in re.split(r"[-_]", variant) for variant in firmware.variants)
