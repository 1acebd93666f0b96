"""What a kit measures, once a minute: signal, cell, supply, temperature; and the last hour of it.

Nothing here uses the radio: the modem is asked for what it knows already, and not while it sleeps.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from agent.daemon.snapshot import HISTORY, Cell, Reading
from at.commands.device_status import ReadSupply, ReadTemperature
from at.commands.power_saving import SleepNotice
from at.commands.signal import Monitor, ReadMonitor
from at.driver.modem import Modem

INTERVAL_S = 55.0
"""Between two readings: the checks of a kit, at which they are made, are a minute apart."""


class KitReadings:
    """The readings of one kit."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.history: list[Reading] = []
        """The newest last, at most HISTORY; each change makes another list."""
        self._clock = clock
        self._read_at = float("-inf")
        self._asleep = False

    def forget(self) -> None:
        """Begin anew: what was measured was another kit's."""
        self.history, self._read_at = [], float("-inf")

    async def follow_sleep(self, modem: Modem) -> None:
        """Follow whether the modem sleeps, as far as it says so, until it is lost."""
        self._asleep = False
        with modem.notices(SleepNotice) as notices:
            async for notice in notices:
                self._asleep = notice.value.time_ms != 0

    def is_due(self) -> bool:
        """Return whether it is time, and the modem awake."""
        return not self._asleep and self._clock() - self._read_at >= INTERVAL_S

    async def read(self, modem: Modem) -> Cell | None:
        """Add a reading; return the serving cell, None where there is none. Raises AtError."""
        self._read_at = self._clock()
        # Another maker's modem has none of them, nor has one that is off by now.
        monitor = await modem.try_send(ReadMonitor())
        supply = await modem.try_send(ReadSupply())
        temperature = await modem.try_send(ReadTemperature())
        reading = Reading(
            datetime.now(UTC),
            rsrp_dbm=None if monitor is None else monitor.rsrp_dbm,
            snr_db=None if monitor is None else monitor.snr_db,
            supply_mv=None if supply is None else supply.vbat_mv,
            temperature_c=None if temperature is None else temperature.temperature_c,
        )
        self.history = [*self.history[1 - HISTORY :], reading]
        return None if monitor is None or monitor.cell_id is None else _cell(monitor)


def _cell(monitor: Monitor) -> Cell:
    return Cell(
        operator=monitor.short_name or monitor.full_name,
        plmn=monitor.plmn,
        tac=monitor.tac,
        cell_id=monitor.cell_id,
        phys_cell_id=monitor.phys_cell_id,
        earfcn=monitor.earfcn,
        band=monitor.band,
    )
