"""Mode, band, place: %XSYSTEMMODE %XCBAND %XBANDLOCK %XCONNSTAT %XDATAPRFL %LOCATION (Nordic's)."""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from at.protocol.command import Command, OkCommand, at_command
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import listed, optional, record, within
from at.protocol.values import Fields, Record, single_line, split

_LOCK_BITS = re.compile("[01]{1,256}")
_LOCK_LIST = re.compile("[1-9][0-9]{0,2}(?:,[1-9][0-9]{0,2})*")
HIGHEST_BAND = 256
"""Bands 255 and 256 are satellites' (TS 36.101, table 5.5-1 and 36.102)."""
HIGHEST_EARFCN = 2**18 - 1
"""TS 36.101, 5.7.3."""
_FLAG = within(0, 1)
_COUNT = within(0, 2**63)


class SystemMode(Record, frozen=True):
    """%XSYSTEMMODE: flags 0/1; preference 0 automatic, 1 LTE-M, 2 NB-IoT, 3 and 4 network first."""

    lte_m: Annotated[int, _FLAG]
    nb_iot: Annotated[int, _FLAG]
    gnss: Annotated[int, _FLAG]
    preference: Annotated[int, within(0, 4)]
    ntn_nb_iot: Annotated[int | None, optional(0, 1)] = None
    """NB-IoT by satellite; None, and not in JSON, for firmware without it."""

    hidden: ClassVar[frozenset[str]] = frozenset({"ntn_nb_iot"})

    def extra_json(self) -> dict[str, object]:
        """Return the satellite's flag where there is one."""
        return {} if self.ntn_nb_iot is None else {"ntn_nb_iot": self.ntn_nb_iot}


class CurrentBand(Record, frozen=True):
    """Answer of %XCBAND; 0 while no band is in use."""

    band: Annotated[int, within(0, HIGHEST_BAND)]


class Bands(Record, frozen=True):
    """Answer of %XCBAND=?."""

    bands: Annotated[tuple[int, ...], listed(1, HIGHEST_BAND)]


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


class BandLock(Record, frozen=True):
    """Answer of %XBANDLOCK?: the bands that are left of a lock, None where it is not set."""

    permanent: Annotated[tuple[int, ...] | None, _locked_bands]
    run_time: Annotated[tuple[int, ...] | None, _locked_bands]


class PlaceRequest(Record, frozen=True):
    """%LOCATION: how far off the place may be that satellites need of the host; 0: they need none.

    What is needed next, and in how many seconds, where the modem knows it.
    """

    accuracy_m: Annotated[int, _COUNT]
    next_accuracy_m: Annotated[int | None, optional(0, 2**63)] = None
    next_in_s: Annotated[int | None, optional(0, 2**63)] = None


class PlaceNotice(Notice, frozen=True):
    """%LOCATION, after AT%LOCATION=1."""

    value: PlaceRequest


class ConnectionStatistics(Record, frozen=True):
    """Answer of %XCONNSTAT?: messages, then kilobytes, then packet sizes in bytes."""

    sms_tx: Annotated[int, _COUNT]
    sms_rx: Annotated[int, _COUNT]
    data_tx: Annotated[int, _COUNT]
    data_rx: Annotated[int, _COUNT]
    packet_max: Annotated[int, _COUNT]
    packet_average: Annotated[int, _COUNT]


class DataProfile(Record, frozen=True):
    """Answer of %XDATAPRFL?."""

    profile: Annotated[int, within(0, 4)]


@at_command("AT%XSYSTEMMODE=")
class SetSystemMode(OkCommand, frozen=True):
    """AT%XSYSTEMMODE=: only in functional mode 0 or 4."""

    lte_m: int
    nb_iot: int
    gnss: int
    preference: int = 0
    ntn_nb_iot: int | None = None
    """NB-IoT by satellite, for firmware that has it."""


@at_command("AT%XSYSTEMMODE?")
class ReadSystemMode(Command[SystemMode], frozen=True):
    """AT%XSYSTEMMODE?."""

    def read(self, fields: Fields) -> SystemMode:
        """Return the system mode."""
        answer = record(SystemMode)(fields)
        known = answer.lte_m or answer.nb_iot or answer.gnss or answer.ntn_nb_iot
        if not (known or fields.left):  # what is left may be a radio that no manual names
            raise fields.fail("the line", "has no radio switched on")
        return answer


@at_command("AT%XCBAND")
class ReadBand(Command[CurrentBand], frozen=True):
    """AT%XCBAND."""


@at_command("AT%XCBAND=?")
class TestBand(Command[Bands], frozen=True):
    """AT%XCBAND=?."""


@at_command("AT%XBANDLOCK?")
class ReadBandLock(Command[BandLock], frozen=True):
    """AT%XBANDLOCK?."""


@at_command("AT%XCONNSTAT?")
class ReadConnectionStatistics(Command[ConnectionStatistics], frozen=True):
    """AT%XCONNSTAT?."""

    def parse(self, lines: Sequence[str]) -> ConnectionStatistics:
        """Return the counters; some firmware writes "=" for the colon."""
        line = single_line(lines, self.name)
        if line.startswith(f"{self.name}="):
            fields = Fields(split(line.partition("=")[2]), self.name)
        else:
            fields = Fields.of(line, self.name)
        answer = record(ConnectionStatistics)(fields)
        fields.end()
        return answer


@at_command("AT%XDATAPRFL?")
class ReadDataProfile(Command[DataProfile], frozen=True):
    """AT%XDATAPRFL?."""


register_readers(PlaceNotice, {"%LOCATION": record(PlaceRequest)})
