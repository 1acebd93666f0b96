"""The modem's clock: +CCLK and %XTIME. It has no time until the network or +CCLK sets one."""

from datetime import UTC, datetime, timedelta

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm
from at.virtual.kit import Reply, VirtualKit, fail, ok

QUARTERS = 4
"""Time zone of the simulated world, in quarters of an hour: UTC+1."""


def network_time(kit: VirtualKit) -> None:
    """Set the clock to the network's time, and print %XTIME where subscribed."""
    kit.session.clock_offset_s = kit.unix_offset_s
    if kit.session.subscriptions.xtime:
        utc = datetime.fromtimestamp(kit.now + kit.unix_offset_s, UTC)
        digits = utc.strftime("%y%m%d%H%M%S") + f"{QUARTERS:02}"
        # Nibbles are swapped: 3GPP TS 23.040 clause 9.2.3.11.
        swapped = "".join(digits[i + 1] + digits[i] for i in range(0, len(digits), 2))
        kit.notify(f'%XTIME: "{swapped[-2:]}","{swapped}","00"')


def clock(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CCLK: local time with the zone in quarters of an hour (3GPP TS 27.007 clause 8.15)."""
    if request.form is RequestForm.READ:
        seconds = kit.modem_time()
        if seconds is None:
            return fail()
        local = datetime.fromtimestamp(seconds, UTC) + timedelta(minutes=15 * QUARTERS)
        return ok(f'+CCLK: "{local:%y/%m/%d,%H:%M:%S}{QUARTERS:+03}"')
    if request.form is not RequestForm.SET or len(request.parameters) != 1:
        raise BadRequest
    kit.session.clock_offset_s = _read(request.text(0)) - kit.now
    return ok()


def _read(text: str) -> float:
    zone = text[17:]
    if len(text) not in {17, 20} or (zone and not (zone[0] in "+-" and zone[1:].isdecimal())):
        raise BadRequest
    try:
        local = datetime.strptime(text[:17], "%y/%m/%d,%H:%M:%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadRequest from error
    return (local - timedelta(minutes=15 * int(zone or "0"))).timestamp()


def time_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XTIME."""
    kit.session.subscriptions.xtime = request.number(0, 0, 1)
    return ok()


COMMANDS = {"+CCLK": clock, "%XTIME": time_notices}
