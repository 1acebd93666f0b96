"""Options of the virtual modem: model, firmware, identity, dialect, faults, delays."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass, replace

from at.protocol.errors import AtError

# Written out, not taken from the driver: a mistake of the driver's would hide itself, and a dialect
# that it learns would be offered here half-built.
MODULE = "nrf93m1"
"""The model that takes its commands itself, and its dialect."""
DIALECTS = ("at-host", "serial-modem", "nrf93m1", "shell", "modem-shell")
_OF_MODULE = (MODULE, "shell", "modem-shell")
_OF_NRF91 = ("at-host", "serial-modem", "shell")
TERMINATORS = {"cr": b"\r", "lf": b"\n", "crlf": b"\r\n", "null": b"\x00"}

# IMEIs whose TAC begins with 00 are set aside for tests: no device that was sold has one.
_TEST_TAC = "00101834"
_SERIAL_MODEM = re.compile(
    r"serial-modem-v?(\d{1,3}\.\d{1,3}\.\d{1,3}(?:[-+][A-Za-z0-9.+-]{1,40})?)", re.ASCII
)
_VERSION = re.compile(r"(?:^|[-_])(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?=$|[-_])")
_NONE = (0, 0, 0)


class OptionError(AtError):
    """An option of the virtual modem is wrong."""

    kind = "usage"


@dataclass(frozen=True, slots=True)
class ChipModel:
    """One chip of the family. `family` is its name in firmware versions."""

    chip: str
    family: str
    name: str
    hardware: str
    firmware: str
    attestation_type: int


MODELS = {
    "nrf9160": ChipModel(
        "nRF9160", "nrf9160", "nRF9160-SICA", "nRF9160 SICA B1A", "mfw_nrf9160_1.3.7", 3
    ),
    "nrf9161": ChipModel(
        "nRF9161", "nrf91x1", "nRF9161-LACA", "nRF9161 LACA A0A", "mfw_nrf91x1_2.0.4", 4
    ),
    "nrf9151": ChipModel(
        "nRF9151", "nrf91x1", "nRF9151-LACA", "nRF9151 LACA A1A", "mfw_nrf91x1_2.0.4", 6
    ),
    "nrf93m1": ChipModel(
        "nRF93M1", "nrf93m1", "nRF93M1-LABA-A0A (20250428)", "", "mfw_nrf93m1_1.5.0", 0
    ),
}


@dataclass(frozen=True, slots=True)
class VirtualOptions:
    """Options of the virtual modem. "" means the model's default, or a value derived from it."""

    model: str = ""
    firmware: str = ""
    """Of the modem; or of the application, as serial-modem-2.0.0, which implies the dialect."""
    imei: str = ""
    uuid: str = ""
    name: str = ""
    """What the IMEI is made from where none is given: a path or an address, "" the usual kit."""
    dialect: str = ""
    terminator: str = "cr"
    faults: tuple[str, ...] = ()
    """Each as NAME or NAME=ARG (`at.virtual.faults`)."""
    registered: bool = False
    """It was switched on a while ago, and has registered, in place of booting in mode 0."""
    instant: bool = False
    """No delays: a real modem's seconds pass at once, in the same order of events."""
    seed: int = 0
    """Seed of the faults' random numbers. Keys and nonces do not depend on it."""
    provisioning: str = ""
    """Address of the service from which #XNRFPROV takes commands; "" where it has none for it."""
    application: str = ""
    """Version of the Serial Modem; `firmware` may name it."""

    def completed(self) -> VirtualOptions:
        """Return the options with all defaults filled in. Raises OptionError."""
        if named := _SERIAL_MODEM.fullmatch(self.firmware):
            return self._of_serial_modem(named[1]).completed()
        # A firmware's name implies the chip, where no chip is named.
        implied = next((name for name in ("nrf9160", MODULE) if name in self.firmware), "nrf9161")
        name = self.model.lower() or implied  # nRF9160 is Nordic's own spelling
        _check_choice("model", name, MODELS)
        is_module = name == MODULE
        dialect = self.dialect or (MODULE if is_module else DIALECTS[0])
        _check_choice("dialect", dialect, DIALECTS)
        if dialect not in (_OF_MODULE if is_module else _OF_NRF91):
            raise OptionError(
                f"an {MODELS[name].chip} does not speak {dialect}",
                hint=f"choose one of {', '.join(_OF_MODULE if is_module else _OF_NRF91)}",
            )
        _check_choice("terminator", self.terminator, TERMINATORS)
        model = MODELS[name]
        firmware = self.firmware or model.firmware
        if firmware[:1].isdigit():
            firmware = f"mfw_{model.family}_{firmware}"
        if not firmware.lower().startswith(("mfw", "nrf9")) or firmware_version(firmware) == _NONE:
            raise OptionError(
                f"no version of a firmware: {self.firmware!r}",
                hint="write it as 1.3.7, mfw_nrf9160_1.3.7 or serial-modem-2.0.0",
            )
        imei = self.imei or imei_of(self.name)
        if not (imei.isascii() and imei.isdigit() and len(imei) in {14, 15}):
            raise OptionError(f"not an IMEI: {imei!r}", hint="give 14 digits, or 15 with the check")
        if len(imei) == 14:
            imei += check_digit(imei)
        device = self.uuid or device_uuid(imei)
        try:
            device = str(uuid.UUID(device))
        except ValueError as error:
            raise OptionError(f"not a UUID: {device!r}") from error
        return replace(self, model=name, dialect=dialect, firmware=firmware, imei=imei, uuid=device)

    def _of_serial_modem(self, version: str) -> VirtualOptions:
        own = "serial-modem"
        if self.dialect not in {"", own}:
            raise OptionError(
                f"{self.firmware} speaks no dialect but its own, not {self.dialect}",
                hint=f"`--dialect {own}`",
            )
        model = self.model or "nrf9151"  # the chip that it is released for
        return replace(self, firmware="", application=version, dialect=own, model=model)


def _check_choice(what: str, given: str, choices: Collection[str]) -> None:
    if given not in choices:
        raise OptionError(f"no such {what}: {given!r}", hint=f"choose one of {', '.join(choices)}")


def imei_of(name: str) -> str:
    """Return the IMEI of the kit of that name without its check digit, the same each time."""
    if not name:
        return _TEST_TAC + "000001"
    digest = hashlib.sha256(f"virtual kit {name}".encode(errors="surrogatepass")).digest()
    return f"{_TEST_TAC[:5]}{int.from_bytes(digest) % 10**9:09}"


def check_digit(digits: str) -> str:
    """Return the Luhn check digit of an IMEI's 14 digits (3GPP TS 23.003 annex B)."""
    total = 0
    for index, digit in enumerate(digits):
        doubled = int(digit) * (1 + index % 2)
        total += doubled // 10 + doubled % 10
    return str(-total % 10)


def device_uuid(imei: str) -> str:
    """Return a device UUID derived from the IMEI. It begins with letters, as real ones do."""
    digest = hashlib.sha256(f"virtual modem {imei}".encode()).digest()
    return str(uuid.UUID(bytes=b"VIRT" + digest[:12]))


def firmware_uuid(firmware: str) -> str:
    """Return a build id derived from the name of a modem firmware."""
    return str(uuid.UUID(bytes=hashlib.sha256(firmware.encode()).digest()[:16]))


def firmware_version(firmware: str) -> tuple[int, int, int]:
    """Return the version in a firmware's name as numbers, (0, 0, 0) where there is none."""
    versions = _VERSION.findall(firmware)
    return tuple(map(int, versions[0])) if len(versions) == 1 else _NONE  # type: ignore[return-value]
