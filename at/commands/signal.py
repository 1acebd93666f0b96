"""Signal quality: +CESQ %CESQ +CSQ %XMONITOR %CONEVAL; JSON shows units besides indices."""

from collections.abc import Callable
from typing import Annotated, ClassVar

from at.commands.power_saving import HasGrantedTimers, periodic_tau_seconds
from at.commands.registration import REGISTERED, registration_state
from at.commands.system_mode import HIGHEST_BAND, HIGHEST_EARFCN
from at.protocol import levels
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.levels import HasRsrp, HasRsrq, HasSnr
from at.protocol.notices import Notice, register_readers
from at.protocol.record_fields import (
    bits,
    hexadecimal,
    optional,
    optional_hexadecimal,
    record,
    within,
)
from at.protocol.values import Fields, Record


def _known_or_absent(low: int, high: int, *unknown: int) -> Callable[[Fields, str], int | None]:
    """Return what reads an integer of `low`..`high`, one that stands for "not known", or none."""

    def read(fields: Fields, name: str) -> int | None:
        number = fields.optional_integer(name)
        if number is not None and not low <= number <= high and number not in unknown:
            but = " or ".join(map(str, unknown))
            raise fields.fail(name, f"is {number}, not in {low}..{high} and not {but}")
        return number

    return read


def _known(low: int, high: int, *unknown: int) -> Callable[[Fields, str], int]:
    """Return what reads likewise, where there must be one."""
    read = _known_or_absent(low, high, *unknown)
    return lambda fields, name: fields.present(name, read(fields, name))


_RSRP = (levels.RSRP_LOW, levels.RSRP_HIGH, 255)
_rsrp = _known(*_RSRP)
_rsrq = _known(levels.RSRQ_LOW, levels.RSRQ_HIGH, 255)
_optional_rsrp = _known_or_absent(*_RSRP)
_optional_snr = _known_or_absent(0, levels.SNR_HIGH, 127, 255)


def plmn_code(fields: Fields, name: str = "plmn") -> str:
    """Return MCC and MNC as text of 5 or 6 digits: leading zeros of an MNC matter."""
    return fields.present(name, optional_plmn(fields, name))


def optional_plmn(fields: Fields, name: str) -> str | None:
    """Return MCC and MNC, None where they are absent or "" in quotes."""
    code = fields.optional_quoted(name)
    if not code:
        return None
    if len(code) not in {5, 6} or not (code.isascii() and code.isdecimal()):
        raise fields.fail(name, "is not 5 or 6 digits")
    return code


def _rest(fields: Fields, name: str) -> tuple[int, ...]:
    return tuple(fields.integer(name) for _ in range(fields.left))


class SignalQuality(HasRsrp, HasRsrq, Record, frozen=True):
    """Answer of +CESQ; 99 and 255 mean "not known". `rsrp` and `rsrq` are indices."""

    rxlev: Annotated[int, within(0, 99)]
    ber: Annotated[int, within(0, 99)]
    rscp: Annotated[int, within(0, 255)]
    ecno: Annotated[int, within(0, 255)]
    rsrq: Annotated[int, _rsrq]
    rsrp: Annotated[int, _rsrp]

    derived: ClassVar[tuple[str, ...]] = ("rsrq_db", "rsrp_dbm")


class SignalStrength(Record, frozen=True):
    """Answer of +CSQ, of modems that have it: 99 means "not known"."""

    rssi: Annotated[int, within(0, 199)]
    ber: Annotated[int, within(0, 99)]

    derived: ClassVar[tuple[str, ...]] = ("rssi_dbm",)

    @property
    def rssi_dbm(self) -> int | None:
        """Signal strength in dBm: TS 27.007, clause 8.5."""
        return 2 * self.rssi - 113 if self.rssi <= 31 else None


class SignalBand(HasRsrp, HasRsrq, Record, frozen=True):
    """Notice of %CESQ: the threshold indices are the modem's own and never recomputed."""

    rsrp: Annotated[int, _rsrp]
    rsrp_threshold_index: Annotated[int, within(0, 255)]
    rsrq: Annotated[int, _rsrq]
    rsrq_threshold_index: Annotated[int, within(0, 255)]

    derived: ClassVar[tuple[str, ...]] = ("rsrp_dbm", "rsrq_db")


class Monitor(HasRsrp, HasSnr, HasGrantedTimers, Record, frozen=True):
    """Answer of %XMONITOR: beyond `reg_status` all is None while not registered."""

    reg_status: Annotated[int, registration_state]
    full_name: Annotated[str | None, Fields.optional_quoted] = None
    short_name: Annotated[str | None, Fields.optional_quoted] = None
    plmn: Annotated[str | None, optional_plmn] = None
    tac: Annotated[str | None, optional_hexadecimal(4)] = None
    act: Annotated[int | None, optional(0, 99)] = None
    band: Annotated[int | None, optional(0, HIGHEST_BAND)] = None
    cell_id: Annotated[str | None, optional_hexadecimal(8)] = None
    phys_cell_id: Annotated[int | None, optional(0, 503)] = None
    earfcn: Annotated[int | None, optional(0, HIGHEST_EARFCN)] = None
    rsrp: Annotated[int | None, _optional_rsrp] = None
    snr: Annotated[int | None, _optional_snr] = None
    nw_provided_edrx_value: Annotated[str | None, bits(4)] = None
    active_time: Annotated[str | None, bits(8)] = None
    periodic_tau_ext: Annotated[str | None, bits(8)] = None
    periodic_tau: Annotated[str | None, bits(8)] = None
    further: Annotated[tuple[int, ...], _rest] = ()
    """Four numbers of satellite firmware, whose meaning is not public; not in JSON of others."""

    hidden: ClassVar[frozenset[str]] = frozenset({"further"})
    derived: ClassVar[tuple[str, ...]] = (
        "rsrp_dbm",
        "snr_db",
        "active_time_s",
        "periodic_tau_ext_s",
        "periodic_tau_s",
    )

    def extra_json(self) -> dict[str, object]:
        """Return the units, and satellite firmware's further numbers where there are any."""
        further = {"further": self.further} if self.further else {}
        return {**Record.extra_json(self), **further}

    @property
    def periodic_tau_s(self) -> int | None:
        """T3412 (legacy) in seconds."""
        return periodic_tau_seconds(self.periodic_tau)


class ConnectionEvaluation(HasRsrp, HasRsrq, HasSnr, Record, frozen=True):
    """Answer of %CONEVAL: result 0 ok, 1 no cell, 2 no UICC ... 7 unspecified."""

    result: Annotated[int, within(0, 7)]
    rrc_state: Annotated[int | None, within(0, 1)] = None
    energy_estimate: Annotated[int | None, within(5, 9)] = None
    rsrp: Annotated[int | None, _rsrp] = None
    rsrq: Annotated[int | None, _rsrq] = None
    snr: Annotated[int | None, _optional_snr] = None
    cell_id: Annotated[str | None, hexadecimal(8)] = None
    plmn: Annotated[str | None, plmn_code] = None
    phys_cell_id: Annotated[int | None, within(0, 503)] = None
    earfcn: Annotated[int | None, within(0, HIGHEST_EARFCN)] = None
    band: Annotated[int | None, within(0, HIGHEST_BAND)] = None
    tau_triggered: Annotated[int | None, _known(0, 1, 255)] = None
    ce_level: Annotated[int | None, _known(0, 3, 255)] = None
    tx_power: Annotated[int | None, Fields.integer] = None
    tx_repetitions: Annotated[int | None, Fields.integer] = None
    rx_repetitions: Annotated[int | None, Fields.integer] = None
    dl_pathloss: Annotated[int | None, Fields.integer] = None

    derived: ClassVar[tuple[str, ...]] = ("rsrp_dbm", "rsrq_db", "snr_db")


class SignalBandNotice(Notice, frozen=True):
    """%CESQ as a notice."""

    value: SignalBand


@at_command("AT+CESQ")
class ReadSignalQuality(Command[SignalQuality], frozen=True):
    """AT+CESQ, TS 27.007 clause 8.69."""

    def read(self, fields: Fields) -> SignalQuality:
        """Return the six fields."""
        answer = record(SignalQuality)(fields)
        if fields.left == 3:  # 5G modems add ss_rsrq, ss_rsrp and ss_sinr
            for name in ("ss_rsrq", "ss_rsrp", "ss_sinr"):
                fields.integer(name, 0, 255)
        return answer


@at_command("AT+CSQ")
class ReadSignalStrength(Command[SignalStrength], frozen=True):
    """AT+CSQ, TS 27.007 clause 8.5."""


@at_command("AT%CESQ=")
class SetSignalNotices(OkCommand, frozen=True):
    """AT%CESQ=<0|1>: a subscription; it answers nothing but OK."""

    n: int = 1


@at_command("AT%XMONITOR")
class ReadMonitor(Command[Monitor], frozen=True):
    """AT%XMONITOR: the serving cell."""

    def read(self, fields: Fields) -> Monitor:
        """Return what is known of the serving cell."""
        count = fields.left
        if count == 1:
            alone = Monitor(registration_state(fields, "reg_status"))
            if alone.reg_status not in REGISTERED:  # registered, it tells of its cell
                return alone
        # Firmware before 1.2 has no Periodic-TAU; that for satellites has four numbers more.
        if count not in {15, 16, 20}:
            raise fields.fail("the line", f"has {count} fields, not 15, 16 or 20")
        if count != 20 and not fields.peek(count - 1).quoted:
            raise fields.fail("the last timer", "is not in quotes")  # the line was cut
        return record(Monitor)(fields)


@at_command("AT%CONEVAL")
class EvaluateConnection(Command[ConnectionEvaluation], frozen=True):
    """AT%CONEVAL: what a transmission would cost now. It may use the radio for seconds."""

    def read(self, fields: Fields) -> ConnectionEvaluation:
        """Return the evaluation; beyond `result` all is None unless it is 0."""
        count = fields.left
        if count == 1 and fields.peek().text != "0":
            return ConnectionEvaluation(fields.integer("result", 1, 7))
        if count != 17:
            raise fields.fail("the line", f"has {count} fields, not 17")
        return record(ConnectionEvaluation)(fields)


register_readers(SignalBandNotice, {"%CESQ": record(SignalBand)})
