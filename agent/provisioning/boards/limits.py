"""Limits that a board must keep before it is written to: supply, temperature, signal, SIM."""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from at.commands.functional_mode import LTE_MODES, FunctionalMode
from at.protocol.errors import CommandRejected, ParseError

if TYPE_CHECKING:
    from at.causes.diagnosis import Cause

_SIM_MODES = LTE_MODES | {
    FunctionalMode.UICC_ON,
    FunctionalMode.FLIGHT_UICC_ON,
    FunctionalMode.FLIGHT_REGISTERED_UICC_ON,
}
_MEND = "mend that, or change provisioning.limits in the profile"
_TURN_ON = "turn the radio on (`cellagent modem on`), then run again"
_WAIT = "wait until the modem has found a cell (`cellagent modem signal`), then run again"


class Quantity(Enum):
    """What is limited, with its unit."""

    SUPPLY = "supply voltage", "mV"
    TEMPERATURE = "temperature", "°C"
    RSRP = "RSRP", "dBm"
    SIM = "SIM", ""
    """1 where it is ready, 0 where it is not."""

    @property
    def words(self) -> str:
        """Its name for a person."""
        return self.value[0]

    def readable_in(self, mode: int) -> bool:
        """Whether the modem can know it in a functional mode."""
        if self is Quantity.RSRP:
            return mode in LTE_MODES
        return self is not Quantity.SIM or mode in _SIM_MODES

    def shown(self, value: int) -> str:
        """Return a value with its unit."""
        if self is Quantity.SIM:
            return "ready" if value else "not ready"
        return f"{value} {self.value[1]}"


Measure = Callable[[Quantity], Awaitable["int | None"]]
"""Reads a quantity of a board in its unit, None where the modem does not know it."""
Why = Callable[[], Awaitable["Cause | None"]]
"""Returns why a board's modem does not do its work, None where it shows no trouble."""
_OF_THE_NETWORK = frozenset({Quantity.RSRP, Quantity.SIM})


class Limit(Struct, frozen=True):
    """The least and the most that a quantity may be, in its unit; None where there is no bound."""

    quantity: Quantity
    least: int | None = None
    most: int | None = None

    def __str__(self) -> str:
        if self.quantity is Quantity.SIM:
            return "a SIM that is ready"
        bounds = (("at least", self.least), ("at most", self.most))
        said = [f"{word} {self.quantity.shown(it)}" for word, it in bounds if it is not None]
        return f"{self.quantity.words} {' and '.join(said)}"

    def breach(self, value: int) -> str:
        """Return how a value breaks the limit, "" where it keeps it."""
        below = self.least is not None and value < self.least
        above = self.most is not None and value > self.most
        if not below and not above:
            return ""
        return f"{self.quantity.words} {self.quantity.shown(value)}, and the limit is {self}"


class Judgement(Struct, frozen=True):
    """What was read of a board, in words, and the reason why it is refused, "" where it is not."""

    readings: str
    refusal: str = ""
    hint: str = ""


async def judge(measure: Measure, mode: int, limits: Sequence[Limit], why: Why) -> Judgement:
    """Read what is limited, and nothing else, and judge it; `mode` is the functional mode.

    A value that cannot be read breaks its limit. Where SIM or signal break one, the modem is asked
    for the cause. Raises AtError where the link is lost.
    """
    readings: list[str] = []
    breaches: list[str] = []
    hint = _MEND
    is_of_network = False
    for limit in limits:
        quantity = limit.quantity
        if not quantity.readable_in(mode):
            hint = _TURN_ON
            breaches.append(_unread(limit, f"cannot be read in functional mode {mode}"))
            continue
        value, reason = await _read(measure, quantity)
        if value is None:
            hint = _WAIT if quantity is Quantity.RSRP else hint
            breaches.append(_unread(limit, reason))
            is_of_network |= quantity in _OF_THE_NETWORK
            continue
        readings.append(f"{quantity.words} {quantity.shown(value)}")
        if breach := limit.breach(value):
            breaches.append(breach)
            is_of_network |= quantity in _OF_THE_NETWORK
    if is_of_network and (cause := await why()) is not None:
        breaches.append(cause.says.removesuffix("."))
        hint = cause.next
    return Judgement(", ".join(readings), "; ".join(breaches), hint if breaches else "")


def _unread(limit: Limit, why: str) -> str:
    return f"{limit.quantity.words} {why}, and the limit is {limit}"


async def _read(measure: Measure, quantity: Quantity) -> tuple[int | None, str]:
    """Return a value, or None and the reason why there is none."""
    try:
        value = await measure(quantity)
    except (CommandRejected, ParseError) as error:
        return None, f"cannot be read: {error}"
    return value, "" if value is not None else "is not known to the modem"
