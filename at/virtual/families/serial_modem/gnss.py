"""Satellite navigation (GNSS) on the Serial Modem: #XGNSS #XGNSSDEL. Fixes are true positions."""

from datetime import UTC, datetime

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, tested
from at.virtual.kit import Reply, VirtualKit, fail, ok

STOP, START = range(2)
STOPPED, STARTED, WOKEN, TIMED_OUT, FIXED = range(5)
_ONCE, _CONTINUOUS, _SHORTEST_PERIOD = 0, 1, 10
# Seconds until a fix: cold, with assistance data, and once the satellites are known.
_COLD_S, _ASSISTED_S, _HOT_S = 32.0, 6.0, 1.5
_ALTITUDE_M, _ACCURACY_M = 21.5, 4.25


def control(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XGNSS: needs GNSS in the system mode, and the receiver switched on."""
    session = kit.session
    if request.form is RequestForm.READ:
        return ok(f"#XGNSS: {int(session.gnss_on)},{session.gnss_status}")
    if request.number(0, STOP, START) == STOP:
        if len(request.parameters) > 1:
            raise BadRequest
        if session.gnss_status == STOPPED:
            return fail()
        kit.cancel(session.gnss_timer)
        _set_status(kit, STOPPED)
        return ok()
    assisted = request.number(1, 0, 1) == 1
    interval_s = request.number(2, _ONCE, 65535)
    timeout_s = request.number(3, 0, 65535, default=60)
    if _CONTINUOUS < interval_s < _SHORTEST_PERIOD or (
        interval_s == _CONTINUOUS and request.given(3)
    ):
        raise BadRequest
    running = session.gnss_status in {STARTED, WOKEN}
    if not session.gnss_on or running or (assisted and not session.cloud_ready):
        return fail()
    _set_status(kit, STARTED)
    takes_s = kit.delay(_ASSISTED_S if assisted else _COLD_S)
    if interval_s == _ONCE and 0 < timeout_s < takes_s:
        _schedule_status(kit, timeout_s, TIMED_OUT, 0)
    else:
        _schedule_status(kit, takes_s, FIXED, interval_s)
    return ok()


def delete_data(kit: VirtualKit, request: CommandRequest) -> Reply:
    """#XGNSSDEL: allowed while the receiver is on and not started."""
    request.number(0, 1, 0x57F)
    running = kit.session.gnss_status in {STARTED, WOKEN}
    return fail() if running or not kit.session.gnss_on else ok()


def switch(kit: VirtualKit, *, on: bool) -> None:
    """Switch the receiver off, or on where the system mode includes GNSS."""
    session = kit.session
    session.gnss_on = on and bool(kit.saved.system_mode[2])
    if not session.gnss_on:
        kit.cancel(session.gnss_timer)
        session.gnss_status = STOPPED


def _set_status(kit: VirtualKit, status: int) -> None:
    kit.session.gnss_status = status
    kit.notify(f"#XGNSS: 1,{status}")


def _schedule_status(kit: VirtualKit, seconds: float, status: int, interval_s: int) -> None:
    kit.session.gnss_timer = kit.schedule_in_session(
        seconds, lambda: _reach_status(kit, status, interval_s)
    )


def _reach_status(kit: VirtualKit, status: int, interval_s: int) -> None:
    """Enter a status, and schedule the next one where there is an interval."""
    if status == FIXED:
        kit.notify(_fix(kit))
        if interval_s == _CONTINUOUS:
            _schedule_status(kit, 1.0, FIXED, interval_s)
            return
    _set_status(kit, status)
    if status == WOKEN:
        _schedule_status(kit, kit.delay(_HOT_S), FIXED, interval_s)
    elif interval_s:
        _schedule_status(kit, float(interval_s), WOKEN, interval_s)


def _fix(kit: VirtualKit) -> str:
    coordinates = kit.position
    utc = datetime.fromtimestamp(kit.now + kit.unix_offset_s, UTC)
    position = f"{coordinates.lat:.6f},{coordinates.lon:.6f},{_ALTITUDE_M:.6f},{_ACCURACY_M:.6f}"
    name = "#XGNSSPOS" if kit.generation > 1 else "#XGNSS"
    return f'{name}: {position},0.000000,0.000000,"{utc:%Y-%m-%d %H:%M:%S}"'


COMMANDS = {
    "#XGNSS": tested(control, "(0,1),(0,1),<interval>,<timeout>"),
    "#XGNSSDEL": tested(delete_data, "<mask>"),
}
