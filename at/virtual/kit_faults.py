"""The effects of faults on the kit behind the line: what it has, measures, keeps and refuses.

A family of commands, the kit or its console asks for a value, and gets the faulty one; it asks for
a fault by its name where that says all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from at.virtual.faults import Faults
from at.virtual.radio_world import MeasuredCell


@dataclass(frozen=True, slots=True)
class CardFault:
    """A SIM that cannot be used, as the modem tells of it: %XSIM, +CPIN ("" for none), an error."""

    cause: int
    code: str
    error: int


_CARDS = {
    "no-sim": CardFault(9, "", 10),
    "sim-failed": CardFault(9, "", 13),
    "sim-pin": CardFault(1, "SIM PIN", 11),
    "sim-puk": CardFault(3, "SIM PUK", 12),
    "sim-blocked": CardFault(5, "", 13),
    "sim-locked": CardFault(7, "PH-NET PIN", 5),
}
_EVENTS = {
    "supply-low": "ME BATTERY LOW",
    "overheated": "ME OVERHEATED",
    "reset-loop": "RESET LOOP",
    "no-imei": "NO IMEI",
    "not-calibrated": "RF CALIBRATION NOT DONE",
}
_OFFLINE = frozenset({"supply-low", "overheated"})
_SEARCHES_FOR_EVER = frozenset({*_EVENTS, "weak"})
_ESM_FAILURE, _PLMN_NOT_ALLOWED = 19, 11  # EMM causes of TS 24.301
_TOO_LOW_MV, _TOO_HOT_C, _NEARER_DB = 2950, 88, 30


class KitFaults(Faults):
    """The faults that are on, with those effects for which a name is not enough."""

    pin_tries = 3
    """How often a PIN may still be tried."""

    @property
    def has_sim(self) -> bool:
        """Whether there is a SIM that can be used."""
        return self.card is None

    @property
    def card(self) -> CardFault | None:
        """What is wrong with the SIM, None for nothing."""
        return next((fault for name, fault in _CARDS.items() if name in self), None)

    @property
    def registration(self) -> int | None:
        """The status at which +CEREG stays, None where it goes on."""
        if self.reject is not None:
            return 3
        if self.names & _SEARCHES_FOR_EVER:
            return 2
        return self.whole("not-registered")

    @property
    def reject(self) -> int | None:
        """The EMM cause with which the network refuses."""
        if "apn-refused" in self:
            return _ESM_FAILURE
        if "forbidden" in self:
            return _PLMN_NOT_ALLOWED
        return self.whole("denied")

    @property
    def event(self) -> str:
        """The text of %MDMEV once the radio is on, "" for none."""
        return next((text for name, text in _EVENTS.items() if name in self), "")

    @property
    def goes_offline(self) -> bool:
        """Whether the modem switches itself off."""
        return bool(self.names & _OFFLINE)

    @property
    def wrong_mode(self) -> tuple[int, int, int, int] | None:
        """The system mode in which it starts, and in which it never registers."""
        flags = [int(flag) for flag in self.text("wrong-mode").split(",") if flag.isdigit()]
        return (flags[0], flags[1], flags[2], flags[3]) if len(flags) == 4 else None

    def heard(self, cells: Sequence[MeasuredCell]) -> list[MeasuredCell]:
        """Return cells as the modem measures them."""
        weaker_db = (self.whole("weak-signal") or 0) + (self.whole("weak") or 0)
        if "interference" in self:
            weaker_db -= _NEARER_DB
        weaker = (replace(cell, rsrp_dbm=cell.rsrp_dbm - weaker_db) for cell in cells)
        return [] if "no-cells" in self else list(weaker)

    def supply_mv(self, usual: int) -> int:
        """Return the supply voltage that is measured."""
        found = _TOO_LOW_MV if "supply-low" in self else self.whole("supply")
        return usual if found is None else found

    def temperature_c(self, usual: int) -> int:
        """Return the temperature that is measured."""
        found = _TOO_HOT_C if "overheated" in self else self.whole("temperature")
        return usual if found is None else found

    def firmware(self, installed: str) -> str:
        """Return the revision of the modem firmware."""
        return self.text("old-firmware") or installed

    def kept(self, content: str) -> str:
        """Return a credential as it is stored."""
        return content.replace("\n", "\r\n") if "line-ends-changed" in self else content
