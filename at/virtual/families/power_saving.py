"""Power saving: +CPSMS +CEDRXS +CEDRXRDP %XMODEMSLEEP %XT3412.

Once a connection is released, T3412 starts. With power saving, the modem sleeps from the end of
T3324 to the end of T3412; with eDRX alone, between two paging windows. The simulated network
grants every request, but for the faults. `VirtualOptions.instant` does not shorten sleeps.
"""

from collections.abc import Callable
from functools import partial

from at.virtual.command_line import BadRequest, CommandRequest, RequestForm, shows, tested
from at.virtual.kit import LTE_M, NB_IOT, NTN_NB_IOT, Reply, VirtualKit, ok
from at.virtual.session import AdvanceWarning
from at.virtual.state import SavedState

T3412 = "01001001"
"""The network's period of updates where no extended one was requested: 54 minutes."""
_OFF = "11100000"
_CYCLE, _WINDOW = "0010", "0011"
_POWER_SAVING, _INACTIVITY, _FLIGHT_MODE = 1, 2, 4
# Seconds of a timer's units: TS 24.008 clauses 10.5.7.3 (T3324, T3412) and 10.5.7.4a (extended).
_UNITS = {"000": 2, "001": 60, "010": 360, "011": 60, "100": 60, "101": 60, "110": 60}
_EXTENDED_UNITS = {
    "000": 600,
    "001": 3600,
    "010": 36_000,
    "011": 2,
    "100": 30,
    "101": 60,
    "110": 1_152_000,
}
# Seconds of a paging cycle and of a step of its window: TS 24.008 clause 10.5.5.32.
_CYCLES_S = (
    *(5.12, 10.24, 20.48, 40.96, 61.44, 81.92, 102.4, 122.88, 143.36, 163.84, 327.68, 655.36),
    *(1310.72, 2621.44, 5242.88, 10485.76),
)
_WINDOW_STEP_S = {"4": 1.28, "5": 2.56, "6": 2.56}  # of LTE-M, of NB-IoT, of it by satellite


def power_saving(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CPSMS: without any parameter it is off, and the timers are the defaults."""
    mode, *timers = kit.saved.psm
    if request.form is RequestForm.READ:
        return ok(f'+CPSMS: {mode},,,"{timers[0]}","{timers[1]}"')
    requested = _bits(request, 3, 8), _bits(request, 4, 8)
    mode = request.number(0, 0, 1, 0)
    defaults = SavedState.fresh(kit.options).psm[1:]
    if mode or not request.given(0):
        timers = [given or default for given, default in zip(requested, defaults, strict=True)]
    kit.saved.psm = (mode, timers[0], timers[1])
    return ok()


def paging_window(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XPTW: the window that is asked for, by technology."""
    windows = kit.saved.settings
    if request.form is RequestForm.READ:
        kept = ((act, windows.get(f"%XPTW {act}")) for act in _WINDOW_STEP_S)
        return ok(*(f'%XPTW: {act},"{window}"' for act, window in kept if window))
    act, window = _asked_technology(kit, request, 0), _bits(request, 1, 4)
    windows[f"%XPTW {act}"] = window or _WINDOW
    return ok()


def paging_cycle(kit: VirtualKit, request: CommandRequest) -> Reply:
    """+CEDRXS: 0 off, 1 on, 2 on with notices, 3 off and reset."""
    cycles = kit.saved.edrx
    if request.form is RequestForm.READ:
        return ok(*(f'+CEDRXS: {act},"{cycle}"' for act, cycle in sorted(cycles.items())))
    mode = request.number(0, 0, 3)
    cycle = _bits(request, 2, 4)
    if mode in {0, 3}:
        cycles.clear()
    elif request.given(1):
        act = str(_asked_technology(kit, request, 1))
        cycles[act] = cycle or cycles.get(act) or _CYCLE
    kit.session.subscriptions.cedrxp = int(mode == 2)
    if kit.registered:
        notify_cycle(kit)
    return ok()


def notify_cycle(kit: VirtualKit) -> None:
    """Print +CEDRXP where subscribed and a cycle is in use."""
    if kit.session.subscriptions.cedrxp and cycle_in_use(kit):
        kit.notify(f"+CEDRXP: {_cycle_fields(kit)}")


def cycle_in_use(kit: VirtualKit) -> str:
    """Return the paging cycle that the network granted, as bits; "" for none."""
    granted = kit.registered and "edrx-refused" not in kit.faults
    return kit.saved.edrx.get(_technology(kit), "") if granted else ""


def _cycle_fields(kit: VirtualKit) -> str:
    cycle = cycle_in_use(kit)
    return f'{_technology(kit)},"{cycle}","{cycle}","{_WINDOW}"' if cycle else "0"


def _technology(kit: VirtualKit) -> str:
    return {LTE_M: "4", NB_IOT: "5", NTN_NB_IOT: "6"}[kit.access_technology]


def _asked_technology(kit: VirtualKit, request: CommandRequest, index: int) -> int:
    return request.number(index, 4, 5 + kit.knows_satellites)


def granted(kit: VirtualKit) -> tuple[str, str]:
    """Return active time and extended periodic update, as bits; off without power saving."""
    mode, periodic_update, active_time = kit.saved.psm
    return (
        (active_time, periodic_update) if mode and "psm-refused" not in kit.faults else (_OFF, _OFF)
    )


def sleep_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XMODEMSLEEP."""
    kit.session.subscriptions.xmodemsleep = _advance_warning(request)
    return ok()


def update_notices(kit: VirtualKit, request: CommandRequest) -> Reply:
    """%XT3412."""
    kit.session.subscriptions.xt3412 = _advance_warning(request)
    return ok()


def _advance_warning(request: CommandRequest) -> AdvanceWarning | None:
    if not request.number(0, 0, 1):
        return None
    warning_ms = request.number(1, 0, 3_600_000)
    if 0 < warning_ms < 500:
        raise BadRequest
    return AdvanceWarning(warning_ms, request.number(2, 10_240, 3_456_000_000))


def start_timers(kit: VirtualKit, update: Callable[[VirtualKit], None]) -> None:
    """Start the timers of a released connection; `update` is called when T3412 ends."""
    if not (kit.active and kit.registered):
        return
    active_s, period_s = (
        _seconds(bits, units)
        for bits, units in zip(granted(kit), (_UNITS, _EXTENDED_UNITS), strict=True)
    )
    if not period_s:
        active_s, period_s = None, _seconds(T3412, _UNITS) or 0
    _announce_span(kit, "%XT3412: ", period_s, lambda: kit.session.subscriptions.xt3412)
    if active_s is not None and active_s < period_s:
        sleep_s = period_s - active_s
        _schedule(kit, active_s, lambda: _fall_asleep(kit, _POWER_SAVING, sleep_s))
    elif cycle := cycle_in_use(kit):
        window_s = _WINDOW_STEP_S[_technology(kit)] * (int(_WINDOW, 2) + 1)
        _page(kit, _CYCLES_S[int(cycle, 2)], window_s)
    _schedule(kit, period_s, lambda: update(kit))


def _page(kit: VirtualKit, cycle_s: float, window_s: float) -> None:
    """Sleep until the next paging window, and again after it."""
    if window_s < cycle_s:
        _fall_asleep(kit, _INACTIVITY, cycle_s - window_s)
        _schedule(kit, cycle_s, lambda: _page(kit, cycle_s, window_s))


def _fall_asleep(kit: VirtualKit, kind: int, seconds: float) -> None:
    session = kit.session
    if _announce_span(
        kit, f"%XMODEMSLEEP: {kind},", seconds, lambda: session.subscriptions.xmodemsleep
    ):
        session.announced_sleep = kind
        _schedule(kit, seconds, lambda: _end_sleep(kit))


def _end_sleep(kit: VirtualKit) -> None:
    kit.session.announced_sleep = 0


def wake(kit: VirtualKit) -> None:
    """End the sleep and cancel its timers."""
    session = kit.session
    for timer in session.sleep_timers:
        kit.cancel(timer)
    session.sleep_timers.clear()
    if session.announced_sleep and session.subscriptions.xmodemsleep is not None:
        kit.notify(f"%XMODEMSLEEP: {session.announced_sleep},0")
    session.announced_sleep = 0


def flight_mode(kit: VirtualKit, *, on: bool) -> None:
    """Enter or leave the sleep of flight mode, which lasts until the mode changes."""
    wake(kit)
    if on and kit.session.subscriptions.xmodemsleep is not None:
        kit.session.announced_sleep = _FLIGHT_MODE
        kit.notify(f"%XMODEMSLEEP: {_FLIGHT_MODE}")


def _announce_span(
    kit: VirtualKit, prefix: str, seconds: float, subscription: Callable[[], AdvanceWarning | None]
) -> bool:
    """Announce a span, its coming end and its end; return False where nobody subscribed to it."""
    whole_ms = round(seconds * 1000)
    warning = subscription()
    if warning is None or whole_ms < warning.threshold_ms:
        return False
    kit.notify(f"{prefix}{whole_ms}")
    remaining = [0]
    if 0 < warning.warning_ms < whole_ms:
        remaining.append(warning.warning_ms)

    def announce(left_ms: int) -> None:
        if subscription() is not None:
            kit.notify(f"{prefix}{left_ms}")

    for left_ms in remaining:
        _schedule(kit, (whole_ms - left_ms) / 1000, partial(announce, left_ms))
    return True


def _schedule(kit: VirtualKit, seconds: float, action: Callable[[], None]) -> None:
    session = kit.session

    def due() -> None:
        session.sleep_timers.remove(number)
        action()

    number = kit.schedule_in_session(seconds, due)
    session.sleep_timers.append(number)


def _seconds(bits: str, units: dict[str, int]) -> int | None:
    unit = units.get(bits[:3])
    return None if unit is None else unit * int(bits[3:], 2)


def _bits(request: CommandRequest, index: int, count: int) -> str:
    """Return a parameter of `count` bits, "" where it is empty. Raises BadRequest."""
    text = request.text(index, "")
    if text and (len(text) != count or set(text) - {"0", "1"}):
        raise BadRequest
    return text


COMMANDS = {
    "%XPTW": paging_window,
    "+CPSMS": power_saving,
    "+CEDRXS": tested(paging_cycle, '(0-3),(4-5),("0000"-"1111")'),
    # The network grants the requested cycle, with a window of its own.
    "+CEDRXRDP": shows(lambda kit: f"+CEDRXRDP: {_cycle_fields(kit)}"),
    "%XMODEMSLEEP": sleep_notices,
    "%XT3412": update_notices,
}
