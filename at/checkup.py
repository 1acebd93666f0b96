"""A check-up of a modem for a person: identity, SIM, registration and time, one line each."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from at.commands.clock import ModemClock, ReadClock
from at.commands.functional_mode import FunctionalMode, ReadFunctionalMode
from at.commands.identity import ReadDeviceUuid, ReadModel
from at.commands.registration import REGISTERED, ReadRegistration
from at.commands.serial_modem.application import ReadSerialModemVersion
from at.commands.sim import ReadPinState
from at.driver.modem import Modem
from at.firmware_gate import FirmwareVerdict
from at.imei import read_imei
from at.protocol.command import Command
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected, ParseError

REGISTRATION = {
    0: "not registered, not searching",
    1: "registered, home network",
    2: "searching",
    3: "denied",
    4: "out of coverage",
    5: "registered, roaming",
    90: "no usable SIM",
}
_MODES: dict[int, str] = {
    FunctionalMode.OFF: "off",
    FunctionalMode.NORMAL: "on",
    FunctionalMode.FLIGHT: "flight mode",
    FunctionalMode.LTE_OFF: "LTE off",
    FunctionalMode.LTE_ON: "LTE on",
    FunctionalMode.FLIGHT_UICC_ON: "flight mode",
    FunctionalMode.FLIGHT_REGISTERED: "flight mode, its registration kept",
    FunctionalMode.FLIGHT_REGISTERED_UICC_ON: "flight mode, its registration kept",
}
_WHY_NOT = {
    "sim": "it answers only while the modem is on: `cellagent modem on`",
    "time": "the network gives the time (`cellagent modem on`); else AT+CCLK sets it",
    "device_uuid": "an nRF9160 tells it in a token only: `cellagent modem jwt`",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: `value` for programs, `shown` for people; `ok` None is neutral."""

    name: str
    value: object
    shown: str
    ok: bool | None = None
    hint: str = ""


def firmware_check(verdict: FirmwareVerdict) -> Check:
    """Return the line for the verdict on the firmware."""
    shown = ": ".join(part for part in (verdict.text, verdict.reason or verdict.note) if part)
    return Check("firmware", verdict.text, shown, verdict.allowed, verdict.hint)


async def application_checks(modem: Modem) -> list[Check]:
    """Return the line for the application's version, which only Serial Modem can be asked for."""
    if modem.dialect is not Dialect.SERIAL_MODEM:
        return []
    version = await modem.try_send(ReadSerialModemVersion())
    return [] if version is None else [Check("application", version.git_describe, version.text)]


async def check_modem(modem: Modem) -> list[Check]:
    """Read everything that can be read without changing the modem; refusals become lines, too."""
    return [await _ask(modem, *question) for question in _QUESTIONS]


_Question = Command[object] | Callable[[Modem], Awaitable[object]]
_QUESTIONS: tuple[tuple[str, _Question, str], ...] = (
    # name, what is asked, and the field of its answer to show
    ("model", ReadModel(), "model"),
    ("imei", read_imei, ""),
    ("device_uuid", ReadDeviceUuid(), "uuid"),
    ("functional_mode", ReadFunctionalMode(), "fun"),
    ("sim", ReadPinState(), "code"),
    ("registration", ReadRegistration(), "stat"),
    ("time", ReadClock(), "time"),
)


async def _ask(modem: Modem, name: str, asked: _Question, field: str) -> Check:
    try:
        answer = await (modem.send(asked) if isinstance(asked, Command) else asked(modem))
    except CommandRejected as refused:
        # A number, or words, say more than a bare ERROR, which may only mean that the modem is off.
        bare = refused.code is None and not refused.text
        hint = _WHY_NOT.get(name, "") if bare else refused.hint
        return Check(name, None, f"not told ({refused})", None, hint)
    except ParseError as malformed:
        return Check(name, None, f"not understood: {malformed}", False)
    value: Any = getattr(answer, field) if field else answer
    if isinstance(answer, ModemClock) and not answer.is_set:
        return Check(name, None, "not set", None, _WHY_NOT[name])
    if name == "registration":
        return Check(name, value, REGISTRATION.get(value, str(value)), value in REGISTERED or None)
    if name == "functional_mode":
        return Check(name, int(value), _mode(int(value)))
    shown = str(value)
    return Check(name, value if isinstance(value, int | None) else shown, shown)


def _mode(mode: int) -> str:
    return f"{mode} ({_MODES[mode]})" if mode in _MODES else str(mode)
