"""System mode and band: %XSYSTEMMODE %XCBAND %XBANDLOCK %XCONNSTAT %XDATAPRFL (Nordic's)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from at.protocol.command import Command, Form, OkCommand, Parameters
from at.protocol.values import Fields, Record, only_row, single_line, split

_LOCK_BITS = re.compile("[01]{1,256}")
_LOCK_LIST = re.compile("[1-9][0-9]{0,2}(?:,[1-9][0-9]{0,2})*")
HIGHEST_BAND = 256
"""Bands 255 and 256 are satellites' (TS 36.101, table 5.5-1 and 36.102)."""


@dataclass(frozen=True, slots=True)
class SystemMode(Record):
    """%XSYSTEMMODE: flags 0/1; preference 0 automatic, 1 LTE-M, 2 NB-IoT, 3 and 4 network first."""

    lte_m: int
    nb_iot: int
    gnss: int
    preference: int | None = None
    ntn_nb_iot: int | None = None
    """NB-IoT by satellite; None, and not in JSON, for firmware without it."""

    hidden: ClassVar[frozenset[str]] = frozenset({"ntn_nb_iot"})

    def extra_json(self) -> dict[str, object]:
        """Return the satellite's flag where there is one."""
        return {} if self.ntn_nb_iot is None else {"ntn_nb_iot": self.ntn_nb_iot}


@dataclass(frozen=True, slots=True)
class CurrentBand(Record):
    """Answer of %XCBAND; 0 while no band is in use."""

    band: int


@dataclass(frozen=True, slots=True)
class Bands(Record):
    """Answer of %XCBAND=?."""

    bands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BandLock(Record):
    """Answer of %XBANDLOCK?: the bands that are left of a lock, None where it is not set."""

    permanent: tuple[int, ...] | None
    run_time: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ConnectionStatistics(Record):
    """Answer of %XCONNSTAT?: messages, then kilobytes, then packet sizes in bytes."""

    sms_tx: int
    sms_rx: int
    data_tx: int
    data_rx: int
    packet_max: int
    packet_average: int


@dataclass(frozen=True, slots=True)
class DataProfile(Record):
    """Answer of %XDATAPRFL?."""

    profile: int


@dataclass(frozen=True, slots=True)
class SetSystemMode(OkCommand):
    """AT%XSYSTEMMODE=: only in functional mode 0 or 4."""

    lte_m: int
    nb_iot: int
    gnss: int
    preference: int = 0
    ntn_nb_iot: int | None = None
    """NB-IoT by satellite, for firmware that has it."""

    name: ClassVar[str] = "%XSYSTEMMODE"
    form: ClassVar[Form] = Form.SET

    def parameters(self) -> Parameters:
        """Return flags and preference."""
        return self.lte_m, self.nb_iot, self.gnss, self.preference, self.ntn_nb_iot


@dataclass(frozen=True, slots=True)
class ReadSystemMode(Command[SystemMode]):
    """AT%XSYSTEMMODE?."""

    name: ClassVar[str] = "%XSYSTEMMODE"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "%XSYSTEMMODE"

    def parse(self, lines: Sequence[str]) -> SystemMode:
        """Return the system mode."""
        fields = only_row(lines, self.name)
        answer = SystemMode(
            fields.integer("lte_m", 0, 1),
            fields.integer("nb_iot", 0, 1),
            fields.integer("gnss", 0, 1),
            fields.optional_integer("preference", 0, 4),
            fields.optional_integer("ntn_nb_iot", 0, 1),
        )
        fields.end()
        if not (answer.lte_m or answer.nb_iot or answer.gnss or answer.ntn_nb_iot):
            raise fields.fail("the line", "has no radio switched on")
        return answer


@dataclass(frozen=True, slots=True)
class ReadBand(Command[CurrentBand]):
    """AT%XCBAND."""

    name: ClassVar[str] = "%XCBAND"
    prefix: ClassVar[str] = "%XCBAND"

    def parse(self, lines: Sequence[str]) -> CurrentBand:
        """Return the band in use."""
        fields = only_row(lines, self.name)
        answer = CurrentBand(fields.integer("band", 0, HIGHEST_BAND))
        fields.end()
        return answer


@dataclass(frozen=True, slots=True)
class TestBand(Command[Bands]):
    """AT%XCBAND=?."""

    __test__: ClassVar[bool] = False  # pytest takes a class of this name for a test

    name: ClassVar[str] = "%XCBAND"
    form: ClassVar[Form] = Form.TEST
    prefix: ClassVar[str] = "%XCBAND"

    def parse(self, lines: Sequence[str]) -> Bands:
        """Return the bands that the modem has."""
        fields = only_row(lines, self.name)
        answer = Bands(fields.integers("bands"))
        fields.end()
        return answer


@dataclass(frozen=True, slots=True)
class ReadBandLock(Command[BandLock]):
    """AT%XBANDLOCK?."""

    name: ClassVar[str] = "%XBANDLOCK"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "%XBANDLOCK"

    def parse(self, lines: Sequence[str]) -> BandLock:
        """Return both locks."""
        fields = only_row(lines, self.name)
        answer = BandLock(_locked_bands(fields, "permanent"), _locked_bands(fields, "run_time"))
        fields.end()
        return answer


def _locked_bands(fields: Fields, name: str) -> tuple[int, ...] | None:
    """Return the bands of bits, the last of which is band 1, or of a list, as for satellites."""
    text = fields.quoted(name)
    if not text:
        return None
    if _LOCK_BITS.fullmatch(text):
        return tuple(band for band, bit in enumerate(reversed(text), 1) if bit == "1")
    bands = tuple(map(int, text.split(","))) if _LOCK_LIST.fullmatch(text) else ()
    if not bands or max(bands) > HIGHEST_BAND:
        raise fields.fail(name, "is neither bits nor a list of bands")
    return bands


@dataclass(frozen=True, slots=True)
class ReadConnectionStatistics(Command[ConnectionStatistics]):
    """AT%XCONNSTAT?."""

    name: ClassVar[str] = "%XCONNSTAT"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "%XCONNSTAT"

    def parse(self, lines: Sequence[str]) -> ConnectionStatistics:
        """Return the counters; some firmware writes "=" for the colon."""
        line = single_line(lines, self.name)
        if line.startswith(f"{self.name}="):
            fields = Fields(split(line.partition("=")[2]), self.name)
        else:
            fields = Fields.of(line, self.name)
        names = ("sms_tx", "sms_rx", "data_tx", "data_rx", "packet_max", "packet_average")
        answer = ConnectionStatistics(*(fields.integer(name, 0, 2**63) for name in names))
        fields.end()
        return answer


@dataclass(frozen=True, slots=True)
class ReadDataProfile(Command[DataProfile]):
    """AT%XDATAPRFL?."""

    name: ClassVar[str] = "%XDATAPRFL"
    form: ClassVar[Form] = Form.READ
    prefix: ClassVar[str] = "%XDATAPRFL"

    def parse(self, lines: Sequence[str]) -> DataProfile:
        """Return the profile."""
        fields = only_row(lines, self.name)
        answer = DataProfile(fields.integer("profile", 0, 4))
        fields.end()
        return answer
