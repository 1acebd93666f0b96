"""Signal quality: +CESQ %CESQ +CSQ %XMONITOR %CONEVAL; JSON shows units besides indices."""

from dataclasses import dataclass
from typing import ClassVar

from at.commands.power_saving import HasGrantedTimers, periodic_tau_seconds
from at.commands.system_mode import HIGHEST_BAND, HIGHEST_EARFCN
from at.protocol.answer_or_notice import REGISTRATION_STATES
from at.protocol.command import Command, OkCommand, at_command
from at.protocol.levels import HasRsrp, HasRsrq, HasSnr, is_rsrp, is_rsrq, is_snr
from at.protocol.notices import Notice, register_readers
from at.protocol.values import Fields, Record


@dataclass(frozen=True, slots=True)
class SignalQuality(HasRsrp, HasRsrq, Record):
    """Answer of +CESQ; 99 and 255 mean "not known". `rsrp` and `rsrq` are indices."""

    rxlev: int
    ber: int
    rscp: int
    ecno: int
    rsrq: int
    rsrp: int

    derived: ClassVar[tuple[str, ...]] = ("rsrq_db", "rsrp_dbm")


@dataclass(frozen=True, slots=True)
class SignalStrength(Record):
    """Answer of +CSQ, of modems that have it: 99 means "not known"."""

    rssi: int
    ber: int

    derived: ClassVar[tuple[str, ...]] = ("rssi_dbm",)

    @property
    def rssi_dbm(self) -> int | None:
        """Signal strength in dBm: TS 27.007, clause 8.5."""
        return 2 * self.rssi - 113 if self.rssi <= 31 else None


@dataclass(frozen=True, slots=True)
class SignalBand(HasRsrp, HasRsrq, Record):
    """Notice of %CESQ: the threshold indices are the modem's own and never recomputed."""

    rsrp: int
    rsrp_threshold_index: int
    rsrq: int
    rsrq_threshold_index: int

    derived: ClassVar[tuple[str, ...]] = ("rsrp_dbm", "rsrq_db")


@dataclass(frozen=True, slots=True)
class Monitor(HasRsrp, HasSnr, HasGrantedTimers, Record):
    """Answer of %XMONITOR: beyond `reg_status` all is None while not registered."""

    reg_status: int
    full_name: str | None = None
    short_name: str | None = None
    plmn: str | None = None
    tac: str | None = None
    act: int | None = None
    band: int | None = None
    cell_id: str | None = None
    phys_cell_id: int | None = None
    earfcn: int | None = None
    rsrp: int | None = None
    snr: int | None = None
    nw_provided_edrx_value: str | None = None
    active_time: str | None = None
    periodic_tau_ext: str | None = None
    periodic_tau: str | None = None
    further: tuple[int, ...] = ()
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


@dataclass(frozen=True, slots=True)
class ConnectionEvaluation(HasRsrp, HasRsrq, HasSnr, Record):
    """Answer of %CONEVAL: result 0 ok, 1 no cell, 2 no UICC ... 7 unspecified."""

    result: int
    rrc_state: int | None = None
    energy_estimate: int | None = None
    rsrp: int | None = None
    rsrq: int | None = None
    snr: int | None = None
    cell_id: str | None = None
    plmn: str | None = None
    phys_cell_id: int | None = None
    earfcn: int | None = None
    band: int | None = None
    tau_triggered: int | None = None
    ce_level: int | None = None
    tx_power: int | None = None
    tx_repetitions: int | None = None
    rx_repetitions: int | None = None
    dl_pathloss: int | None = None

    derived: ClassVar[tuple[str, ...]] = ("rsrp_dbm", "rsrq_db", "snr_db")


@dataclass(frozen=True, slots=True)
class SignalBandNotice(Notice):
    """%CESQ as a notice."""

    value: SignalBand


@at_command("AT+CESQ")
class ReadSignalQuality(Command[SignalQuality]):
    """AT+CESQ, TS 27.007 clause 8.69."""

    def read(self, fields: Fields) -> SignalQuality:
        """Return the six fields."""
        answer = SignalQuality(
            rxlev=fields.integer("rxlev", 0, 99),
            ber=fields.integer("ber", 0, 99),
            rscp=fields.integer("rscp", 0, 255),
            ecno=fields.integer("ecno", 0, 255),
            rsrq=_rsrq(fields),
            rsrp=_rsrp(fields),
        )
        if fields.left == 3:  # 5G modems add ss_rsrq, ss_rsrp and ss_sinr
            for name in ("ss_rsrq", "ss_rsrp", "ss_sinr"):
                fields.integer(name, 0, 255)
        return answer


@at_command("AT+CSQ")
class ReadSignalStrength(Command[SignalStrength]):
    """AT+CSQ, TS 27.007 clause 8.5."""

    def read(self, fields: Fields) -> SignalStrength:
        """Return strength and bit error rate."""
        # 100-199 are the indices of TD-SCDMA and LTE modems.
        return SignalStrength(fields.integer("rssi", 0, 199), fields.integer("ber", 0, 99))


@at_command("AT%CESQ=")
class SetSignalNotices(OkCommand):
    """AT%CESQ=<0|1>: a subscription; it answers nothing but OK."""

    n: int = 1


@at_command("AT%XMONITOR")
class ReadMonitor(Command[Monitor]):
    """AT%XMONITOR: the serving cell."""

    def read(self, fields: Fields) -> Monitor:
        """Return what is known of the serving cell."""
        status = fields.integer("reg_status")
        if status not in REGISTRATION_STATES:
            raise fields.fail("reg_status", f"is {status}, which is no registration state")
        fields_left = fields.left
        if fields_left == 0 and status not in {1, 5}:  # registered, it tells of its cell
            return Monitor(status)
        # Firmware before 1.2 has no Periodic-TAU; that for satellites has four numbers more.
        if fields_left not in {14, 15, 19}:
            raise fields.fail("the line", f"has {fields_left + 1} fields, not 15, 16 or 20")
        if fields_left != 19 and not fields.peek(fields_left - 1).quoted:
            raise fields.fail("the last timer", "is not in quotes")  # the line was cut
        return Monitor(
            reg_status=status,
            full_name=fields.optional_quoted("full_name"),
            short_name=fields.optional_quoted("short_name"),
            plmn=optional_plmn(fields),
            tac=fields.optional_hexadecimal("tac", 4),
            act=fields.optional_integer("act", 0, 99),
            band=fields.optional_integer("band", 0, HIGHEST_BAND),
            cell_id=fields.optional_hexadecimal("cell_id", 8),
            phys_cell_id=fields.optional_integer("phys_cell_id", 0, 503),
            earfcn=fields.optional_integer("earfcn", 0, HIGHEST_EARFCN),
            rsrp=_optional_rsrp(fields),
            snr=_optional_snr(fields),
            nw_provided_edrx_value=fields.bits("nw_provided_edrx_value", 4),
            active_time=fields.bits("active_time", 8),
            periodic_tau_ext=fields.bits("periodic_tau_ext", 8),
            periodic_tau=fields.bits("periodic_tau", 8),
            further=tuple(fields.integer("a further number") for _ in range(fields.left)),
        )


@at_command("AT%CONEVAL", timeout_s=60.0)
class EvaluateConnection(Command[ConnectionEvaluation]):
    """AT%CONEVAL: what a transmission would cost now. It may use the radio for seconds."""

    def read(self, fields: Fields) -> ConnectionEvaluation:
        """Return the evaluation; beyond `result` all is None unless it is 0."""
        result = fields.integer("result", 0, 7)
        if fields.left == 0 and result != 0:
            return ConnectionEvaluation(result)
        if fields.left != 16:
            raise fields.fail("the line", f"has {fields.left + 1} fields, not 17")
        return ConnectionEvaluation(
            result=result,
            rrc_state=fields.integer("rrc_state", 0, 1),
            energy_estimate=fields.integer("energy_estimate", 5, 9),
            rsrp=_rsrp(fields),
            rsrq=_rsrq(fields),
            snr=_optional_snr(fields),
            cell_id=fields.hexadecimal("cell_id", 8),
            plmn=plmn(fields),
            phys_cell_id=fields.integer("phys_cell_id", 0, 503),
            earfcn=fields.integer("earfcn", 0, HIGHEST_EARFCN),
            band=fields.integer("band", 0, HIGHEST_BAND),
            tau_triggered=_known(fields, "tau_triggered", 1),
            ce_level=_known(fields, "ce_level", 3),
            tx_power=fields.integer("tx_power"),
            tx_repetitions=fields.integer("tx_repetitions"),
            rx_repetitions=fields.integer("rx_repetitions"),
            dl_pathloss=fields.integer("dl_pathloss"),
        )


def plmn(fields: Fields) -> str:
    """Return MCC and MNC as text of 5 or 6 digits: leading zeros of an MNC matter."""
    code = optional_plmn(fields)
    if code is None:
        raise fields.fail("plmn", "is missing")
    return code


def optional_plmn(fields: Fields) -> str | None:
    """Return MCC and MNC, None where they are absent or "" in quotes."""
    code = fields.optional_quoted("plmn")
    if not code:
        return None
    if len(code) not in {5, 6} or not (code.isascii() and code.isdecimal()):
        raise fields.fail("plmn", "is not 5 or 6 digits")
    return code


def _rsrp(fields: Fields) -> int:
    index = fields.integer("rsrp")
    if not is_rsrp(index):
        raise fields.fail("rsrp", f"is {index}, not in -17..97 and not 255")
    return index


def _rsrq(fields: Fields) -> int:
    index = fields.integer("rsrq")
    if not is_rsrq(index):
        raise fields.fail("rsrq", f"is {index}, not in -30..46 and not 255")
    return index


def _optional_rsrp(fields: Fields) -> int | None:
    if fields.peek().absent:
        fields.next_value()
        return None
    return _rsrp(fields)


def _optional_snr(fields: Fields) -> int | None:
    index = fields.optional_integer("snr")
    if index is None:
        return None
    if not is_snr(index):
        raise fields.fail("snr", f"is {index}, not in 0..49 and not 127 or 255")
    return index


def _known(fields: Fields, name: str, high: int) -> int:
    number = fields.integer(name, 0, 255)
    if high < number < 255:
        raise fields.fail(name, f"is {number}, not in 0..{high} and not 255")
    return number


def _signal_band(fields: Fields) -> SignalBand:
    return SignalBand(
        rsrp=_rsrp(fields),
        rsrp_threshold_index=fields.integer("rsrp_threshold_index", 0, 255),
        rsrq=_rsrq(fields),
        rsrq_threshold_index=fields.integer("rsrq_threshold_index", 0, 255),
    )


register_readers(SignalBandNotice, {"%CESQ": _signal_band})
