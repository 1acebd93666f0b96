"""`cellagent modem signal`: signal levels of the serving cell, once or repeatedly."""

import sys
from dataclasses import dataclass

import click

from agent.cli.framework.command import agent_command, emit_or_say
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import bar
from agent.cli.modem.why import show
from at.commands.registration import REGISTERED
from at.commands.signal import Monitor, ReadMonitor, ReadSignalQuality, SignalQuality
from at.driver.modem import Modem

_BAR = 20
# Levels that count as bad and good: the ends of the bars.
_RSRP = (-140.0, -70.0)
_RSRQ = (-20.0, -5.0)
_SNR = (-10.0, 25.0)


@dataclass(frozen=True, slots=True)
class Reading:
    """The answers of +CESQ and %XMONITOR; `monitor` is None where %XMONITOR is not supported."""

    quality: SignalQuality
    monitor: Monitor | None


@agent_command("cellagent modem signal --port /dev/ttyACM0 --watch 5")
@click.option(
    "--watch",
    "interval_s",
    type=Seconds(0.1),
    metavar="SECONDS",
    help="Ask again every so many seconds, until Ctrl-C.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after N readings.")
async def command(session: Session, interval_s: float | None, count: int | None) -> None:
    """Show RSRP, RSRQ and SNR of the serving cell (+CESQ, %XMONITOR).

    Does not switch the modem on: one that is off has no levels, which are then "not known". Of a
    modem that is not registered the cause is told, too, as `modem why` tells it.
    """
    import asyncio

    from at.causes.live import causes_of_modem

    async with session.modem() as modem:
        readings, told = 0, session.json
        while True:
            reading = await _read(modem)
            emit_or_say(session, as_object(reading), *describe(reading))
            readings += 1
            if _registered(reading) is False and not told:
                told = True  # with --watch, once: what it reads goes on
                show(await causes_of_modem(modem, watch_s=0), session)
            if interval_s is None or (count is not None and readings >= count):
                break
            sys.stdout.flush()  # to a pipe, too: who reads it waits as long
            await asyncio.sleep(interval_s)


async def _read(modem: Modem) -> Reading:
    from at.protocol.errors import CommandRejected

    quality = await modem.send(ReadSignalQuality())
    try:
        monitor = await modem.send(ReadMonitor())
    except CommandRejected:
        return Reading(quality, None)  # another vendor's modem
    return Reading(quality, monitor)


def as_object(reading: Reading) -> dict[str, object]:
    """Return a reading as one JSON object of the fields of both answers; +CESQ takes precedence."""
    found = reading.quality.to_json()
    monitor = reading.monitor.to_json() if reading.monitor is not None else {}
    found |= {name: value for name, value in monitor.items() if name not in found}
    found["registered"] = _registered(reading)
    return found


def describe(reading: Reading) -> list[str]:
    """Return a reading as lines for a person, 80 columns wide at most."""
    quality, monitor = reading.quality, reading.monitor
    lines = []
    if monitor is not None and monitor.plmn is not None:
        name = monitor.full_name or monitor.short_name or "operator"
        lines.append(f"{name} {monitor.plmn}  cell {monitor.cell_id}  band {monitor.band}")
    snr = None if monitor is None else monitor.snr_db
    levels = (
        ("RSRP", quality.rsrp_dbm, "dBm", _RSRP),
        ("RSRQ", quality.rsrq_db, "dB", _RSRQ),
        ("SNR", snr, "dB", _SNR),
    )
    for name, level, unit, ends in levels:
        shown = "not known" if level is None else f"{level:g} {unit}"
        lines.append(f"{name:<5} {shown:>10}  {bar(level, *ends, _BAR)}")
    return lines


def _registered(reading: Reading) -> bool | None:
    return None if reading.monitor is None else reading.monitor.reg_status in REGISTERED
