"""Signal levels: the modem's indices, and what they are in dBm and dB.

The formulas are those of the current SDK (modem_info.h): a level is the lower edge of its step.
None is "not known", also for an index outside the tables.
"""

RSRP_LOW, RSRP_HIGH = -17, 97
RSRQ_LOW, RSRQ_HIGH = -30, 46
SNR_HIGH = 49


def rsrp_to_dbm(index: int | None) -> int | None:
    """Return the lower edge, in dBm, of an RSRP step: TS 36.133, clause 9.1.4."""
    if index is None or index == 0 or not RSRP_LOW <= index <= RSRP_HIGH:
        return None
    return index - 140 if index < 0 else index - 141


def rsrq_to_db(index: int | None) -> float | None:
    """Return the lower edge, in dB, of an RSRQ step: TS 36.133, clause 9.1.7."""
    if index is None or index == 0 or not RSRQ_LOW <= index <= RSRQ_HIGH:
        return None
    if index < 0:
        return (index - 39) / 2
    return (index - 40) / 2 if index < 35 else (index - 41) / 2


def snr_to_db(index: int | None) -> int | None:
    """Return the signal-to-noise ratio in dB of an index of %XMONITOR or %CONEVAL."""
    if index is None or not 0 <= index <= SNR_HIGH:
        return None
    return index - 24


class HasRsrp:
    """A record with an RSRP index has the level beside it."""

    __slots__ = ()
    rsrp: int | None

    @property
    def rsrp_dbm(self) -> int | None:
        """RSRP in dBm, None when it is not known."""
        return rsrp_to_dbm(self.rsrp)


class HasRsrq:
    """A record with an RSRQ index has the quality beside it."""

    __slots__ = ()
    rsrq: int | None

    @property
    def rsrq_db(self) -> float | None:
        """RSRQ in dB, None when it is not known."""
        return rsrq_to_db(self.rsrq)


class HasSnr:
    """A record with an SNR index has the ratio beside it."""

    __slots__ = ()
    snr: int | None

    @property
    def snr_db(self) -> int | None:
        """Signal-to-noise ratio in dB, None when it is not known."""
        return snr_to_db(self.snr)
