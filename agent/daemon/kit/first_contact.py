"""The first minute with a kit: who it is, whether it may be used, what it lacks and the way out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.errors import ConfigError, CredentialError
from agent.fota.installers.base import running_by_at
from agent.fota.jobs import FirmwareType
from agent.wiring.update_runner import device_id_of
from at.checkup import Check, check_modem
from at.commands.identity import ReadRevision
from at.commands.registration import ReadRegistration
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected, ParseError
from at.protocol.firmware import FirmwareVerdict, gate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent.auth.credential import Keyring
    from at.driver.modem import Modem

_ON = frozenset({1, 2, 21})
_NOTICES = 5  # the most telling form
SETTLE_S = 30.0
"""How long a modem may search before that is worth a word."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that keeps the agent from its whole job, and the way out."""

    what: str
    way_out: str = ""
    may_settle: bool = False
    """Whether it is how every start looks, and worth a word only if it stays."""

    def __str__(self) -> str:
        return f"{self.what}; try: {self.way_out}" if self.way_out else self.what


@dataclass(frozen=True, slots=True)
class Contact:
    """What a kit said of itself. `device_id` is "" where it does not tell one."""

    verdict: FirmwareVerdict
    checks: tuple[Check, ...]
    device_id: str
    application: str = ""
    """The version of the application, "" where it does not tell one."""

    @property
    def refusal(self) -> str:
        """Why no call may be made in the kit's name, "" where it may (clause D1.3)."""
        return "" if self.verdict.allowed else self.verdict.reason

    def told(self, name: str) -> object:
        """Return the value of a check, None where the modem did not tell."""
        return next((check.value for check in self.checks if check.name == name), None)


class Told:
    """Which findings were told: each once, its end once; what may settle is given time to."""

    def __init__(self) -> None:
        self._since: dict[Finding, float] = {}
        self._told: set[Finding] = set()

    def news(
        self, found: Sequence[Finding], now: float
    ) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """Return what is to be told now, and what was told and is settled. `now` in seconds."""
        self._since = {each: self._since.get(each, now) for each in found}
        new = tuple(
            each
            for each, since in self._since.items()
            if each not in self._told and (not each.may_settle or now - since >= SETTLE_S)
        )
        settled = tuple(each for each in self._told if each not in self._since)
        self._told = {*self._told, *new}.difference(settled)
        return new, settled

    @property
    def unsettled(self) -> bool:
        """Whether something may settle soon, or is to be told soon."""
        return any(each not in self._told for each in self._since)


async def gate_modem(modem: Modem) -> FirmwareVerdict:
    """Ask for the firmware and judge it; one that does not tell is refused."""
    text = ""
    with suppress(CommandRejected, ParseError):
        text = (await modem.send(ReadRevision())).revision
    return gate(text)


async def meet(modem: Modem, device_id: str) -> Contact:
    """Ask the modem everything that changes nothing. `device_id` is the profile's, or ""."""
    verdict = await gate_modem(modem)
    checks = tuple(await check_modem(modem))
    if not device_id:
        # A modem whose firmware is refused is not asked for a token.
        with suppress(ConfigError):
            told = next((c.value for c in checks if c.name == "device_uuid"), None)
            device_id = str(told) if told else await device_id_of(modem) if verdict.allowed else ""
    return Contact(verdict, checks, device_id, await _application(modem))


async def _application(modem: Modem) -> str:
    """Return the version of the application; only Serial Modem can be asked for it."""
    if modem.dialect is not Dialect.SERIAL_MODEM:
        return ""
    running = await running_by_at(modem, FirmwareType.APP)
    return running.version if running else ""


async def watch_registration(modem: Modem) -> None:
    """Have the modem tell its registration: raised if it is off, never lowered."""
    with suppress(CommandRejected, ParseError):
        n = (await modem.send(ReadRegistration())).n or _NOTICES
        await modem.subscribe(f"AT+CEREG={n}")


def findings(contact: Contact, keyring: Keyring) -> tuple[Finding, ...]:
    """Return what is missing, the first thing to do first."""
    return tuple(_findings(contact, keyring))


def _findings(contact: Contact, keyring: Keyring) -> Iterable[Finding]:
    if not contact.verdict.allowed:
        yield Finding(
            f"{contact.refusal}; crashes are reported, no call is made in the kit's name",
            contact.verdict.hint,
        )
    mode, stat = contact.told("functional_mode"), contact.told("registration")
    is_off = mode is not None and mode not in _ON
    if is_off:
        yield Finding(
            f"the modem is off (functional mode {mode}): it hears no network",
            "`cellagent modem at AT+CFUN=1` turns it on",
        )
    elif stat == 90:
        yield Finding("the modem has no usable SIM", "insert one, then restart the kit")
    elif stat == 3:
        yield Finding(
            "the network denies registration",
            "is the SIM active, and its plan one for LTE-M or NB-IoT here?",
        )
    elif stat in {0, 4}:
        yield Finding(
            "the modem is not registered and not searching",
            "check the antenna; `cellagent scan cells` shows what it hears",
            may_settle=True,
        )
    if not contact.verdict.allowed:
        return
    # A modem that is off gets the time when it is on.
    if contact.told("time") is None and Scheme.DEVICE_JWT in keyring and not is_off:
        yield Finding(
            "the modem does not know the time, so it makes no token that ends",
            "the network gives it after registration; or set it: "
            "`cellagent modem at 'AT+CCLK=\"yy/MM/dd,hh:mm:ss+00\"'`",
            may_settle=True,
        )
    try:
        keyring.choose(FetchCurrentJob(contact.device_id or "unknown"))
    except CredentialError as error:
        yield Finding(str(error), error.hint)
    if not contact.device_id:
        yield Finding("the modem does not tell its UUID", "name the device's id in kit.device_id")
