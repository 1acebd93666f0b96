"""What a kit measures: read from a modem, bounded, and not while the modem sleeps."""

from __future__ import annotations

import asyncio

from agent.daemon.kit.readings import INTERVAL_S, KitReadings
from agent.daemon.snapshot import HISTORY, MEASURED, Reading
from at.driver.modem import Modem
from at.virtual.transport import VirtualTransport
from tests.support.modem.line_modem import LineModem, run_session


def test_every_value_of_a_reading_has_a_name_and_a_unit_for_a_person():
    assert ("at", *MEASURED) == Reading.__struct_fields__


async def test_a_registered_kit_tells_signal_cell_supply_and_temperature():
    modem = Modem(VirtualTransport(instant=True))
    await modem.open()
    try:
        await modem.execute("AT+CFUN=1")
        readings = KitReadings()
        cell = await readings.read(modem)
    finally:
        await modem.close()
    (reading,) = readings.history
    assert cell is not None
    assert None not in {cell.cell_id, cell.plmn, cell.band}
    assert None not in {reading.rsrp_dbm, reading.snr_db, reading.supply_mv, reading.temperature_c}


def test_the_last_hour_is_kept_and_what_a_modem_refuses_is_left_out():
    async def work(modem: Modem, far: LineModem) -> None:
        far.body = lambda _command: None
        readings = KitReadings()
        for _ in range(2 * HISTORY):
            assert await readings.read(modem) is None
        assert len(readings.history) == HISTORY
        assert readings.history[-1].rsrp_dbm is None
        assert readings.history[0].at <= readings.history[-1].at

    run_session(work)


def test_a_sleeping_modem_is_left_alone_until_it_wakes_and_none_is_asked_twice_a_minute():
    async def work(modem: Modem, far: LineModem) -> None:
        now = [0.0]
        far.body = lambda _command: None
        readings = KitReadings(clock=lambda: now[0])
        following = asyncio.ensure_future(readings.follow_sleep(modem))
        await asyncio.sleep(0)
        due = []
        for notice in ("%XMODEMSLEEP: 1,3600000", "%XMODEMSLEEP: 1,0", "%XMODEMSLEEP: 4"):
            far.say(notice)
            await asyncio.sleep(0.1)
            due.append(readings.is_due())
        assert due == [False, True, False]
        far.say("%XMODEMSLEEP: 4,0")
        await asyncio.sleep(0.1)
        await readings.read(modem)
        assert not readings.is_due()
        now[0] += INTERVAL_S
        assert readings.is_due()
        following.cancel()

    run_session(work)
