"""The state in which a kit is found before something of ours restarts it, and its way back there.

What a restart clears and no read command tells (%XMODEMSLEEP, %MDMEV, %XTIME) cannot be found: the
kit's own firmware subscribes to that again, and the driver to what it subscribed to itself.
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from at.causes.live import likeliest_cause
from at.commands.clock import ReadClock, SetClock, clock_text, read_clock
from at.commands.functional_mode import (
    LTE_MODES,
    FunctionalMode,
    ReadFunctionalMode,
    SetFunctionalMode,
)
from at.commands.registration import REGISTERED, ReadRegistration
from at.driver.modem import Modem
from at.protocol.errors import AtError, CommandRejected, LinkLost
from at.protocol.line.answer_or_notice import fields

T = TypeVar("T")

ONLINE_S = 120.0
"""How long a modem that was on the network may take to be there again, once it is on."""
NOT_BACK = "not back online"
"""How the sentence begins that says so; the cause follows."""
_PAUSE_S = 1.0
_ALL = 99
_SETTINGS = {"%XSYSTEMMODE": _ALL, "+CEREG": 1, "+CSCON": 1, "+CNEC": 1, "+CGEREP": 1}
"""Command -> how many values of its read answer its set form takes."""
_OFF_ONLY = "%XSYSTEMMODE"


class Clock(Protocol):
    """The time, and waits."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""


@dataclass(frozen=True, slots=True)
class FoundState:
    """What a modem was set to. `settings` is command -> values, as the set form takes them."""

    mode: int
    registered: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    clock: str = ""
    """As +CCLK tells it, "" where the modem had no time."""
    at: float = 0.0
    """When it was found: Unix time."""


async def read_found_state(modem: Modem) -> FoundState:
    """Read what a restart would change. Raises AtError."""
    return await _twice(lambda: _read(modem))


async def _read(modem: Modem) -> FoundState:
    mode = (await modem.send(ReadFunctionalMode())).fun
    settings = {name: value for name in _SETTINGS if (value := await _setting(modem, name))}
    return FoundState(
        mode,
        await is_registered(modem),
        settings,
        await _time(modem),
        datetime.now(UTC).timestamp(),
    )


async def put_back(modem: Modem, found: FoundState, settle_s: float, clock: Clock) -> str:
    """Bring a restarted modem back to what was found; return how that ended, as a sentence.

    Its own firmware has `settle_s` seconds to turn it on first. "" for a modem that was off.
    Raises LinkLost.
    """
    if found.mode == FunctionalMode.OFF:
        return ""
    begun = clock.monotonic()
    try:
        is_back = await _twice(lambda: _bring_back(modem, found, settle_s, clock))
        if found.mode not in LTE_MODES:
            return ""
        if not is_back:
            cause = await likeliest_cause(modem)
            says = cause.says if cause else f"it has not registered within {ONLINE_S:.0f} s"
            return f"{NOT_BACK}: {says}"
    except LinkLost:
        raise
    except AtError as error:
        return f"{NOT_BACK}: {error}"
    took = clock.monotonic() - begun
    return f"back online after {took:.0f} s" if found.registered else f"on again after {took:.0f} s"


async def _twice(work: Callable[[], Awaitable[T]]) -> T:
    """Await `work`, and once more where it failed: a command or answer of it may be damaged."""
    try:
        return await work()
    except LinkLost:
        raise
    except AtError:
        return await work()


async def _bring_back(modem: Modem, found: FoundState, settle_s: float, clock: Clock) -> bool:
    """Set what was found; return whether the modem is on the network again, if it was."""
    was_on = found.mode in LTE_MODES
    if not await _is_on_within(modem, settle_s if was_on else 0.0, clock):
        await _restore(modem, found, _SETTINGS)
        await modem.send(SetFunctionalMode(found.mode))
    # The system mode of firmware that turned the modem on itself is that firmware's choice.
    await _restore(modem, found, _SETTINGS.keys() - {_OFF_ONLY})
    is_back = not (was_on and found.registered) or await _is_back(modem, clock)
    if was_on:
        await _restore_time(modem, found)
    return is_back


async def _is_on_within(modem: Modem, seconds: float, clock: Clock) -> bool:
    """Return whether the firmware turns the modem on in time; a modem that starts may be mute."""
    end = clock.monotonic() + seconds
    while True:
        try:
            if (await modem.send(ReadFunctionalMode())).fun in LTE_MODES:
                return True
        except LinkLost:
            raise
        except AtError:
            if clock.monotonic() >= end:
                raise
        if clock.monotonic() >= end:
            return False
        await clock.sleep(_PAUSE_S)


async def _is_back(modem: Modem, clock: Clock) -> bool:
    end = clock.monotonic() + ONLINE_S
    while not await is_registered(modem):
        if clock.monotonic() >= end:
            return False
        await clock.sleep(_PAUSE_S)
    return True


async def _restore(modem: Modem, found: FoundState, names: Collection[str]) -> None:
    for name, value in found.settings.items():
        if name in names and await _setting(modem, name) != value:
            await modem.execute(f"AT{name}={value}")


async def _restore_time(modem: Modem, found: FoundState) -> None:
    """Set the clock on from where it was found, where the network has given no time since."""
    if found.clock and not await _time(modem):
        since = timedelta(seconds=max(0.0, datetime.now(UTC).timestamp() - found.at))
        if (instant := read_clock(found.clock).local_time).tzinfo is not None:
            with suppress(CommandRejected):
                await modem.send(SetClock(clock_text(instant + since)))


async def _setting(modem: Modem, name: str) -> str:
    """Return a setting as its set form takes it, "" where the modem does not tell it."""
    answer = await modem.execute(f"AT{name}?")
    line = next((line for line in answer.lines if line.startswith(f"{name}:")), "")
    return ",".join(fields(line)[: _SETTINGS[name]])


async def is_registered(modem: Modem) -> bool:
    """Return whether the modem is on the network; one that does not say is not."""
    registration = await modem.try_send(ReadRegistration())
    return registration is not None and registration.stat in REGISTERED


async def _time(modem: Modem) -> str:
    clock = await modem.try_send(ReadClock())
    return clock.time if clock is not None and clock.is_set else ""
