"""First contact with a kit: its identity, the firmware gate, what it lacks and what to try."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from agent.auth.credential import Keyring
from agent.call import Scheme
from agent.cloud.fota_jobs import FetchCurrentJob
from agent.daemon.snapshot import Finding
from agent.errors import CredentialError
from agent.fota.installers.base import running_by_at
from agent.fota.jobs import FirmwareType
from at.causes.diagnosis import Cause
from at.causes.live import likeliest_cause
from at.checkup import Check, check_modem
from at.commands.functional_mode import LTE_MODES
from at.commands.registration import REGISTERED, ReadRegistration
from at.device_uuid import read_device_uuid
from at.driver.modem import Modem
from at.firmware_gate import FirmwareVerdict, read_verdict
from at.protocol.dialect import Dialect
from at.protocol.errors import CommandRejected, ParseError

_NOTICES = 5  # the form of +CEREG with the most fields
_ABOUT = {3: "the network denies registration", 90: "the SIM cannot be used"}
"""Registrations that the modem may give a reason for."""
_CERTAIN = "certain"
_SEARCHES = frozenset({0, 2, 4})
SETTLE_S = 30.0
"""Seconds that a modem may search before that is reported."""


class SettlingFinding(Finding, frozen=True):
    """One that is normal after a start: it is reported only if it lasts for SETTLE_S."""


_NOT_REGISTERED = SettlingFinding(
    "the modem is not registered and not searching",
    "check the antenna; `cellagent scan cells` shows what it hears",
)
_UNREGISTERED = {
    90: Finding("the modem has no usable SIM", "insert one, then restart the kit"),
    3: Finding(
        "the network denies registration",
        "is the SIM active, and its plan one for LTE-M or NB-IoT here?",
    ),
    2: SettlingFinding(
        "the modem searches, and is not on a network yet",
        "check the antenna; `cellagent modem why` says what speaks against it",
    ),
    0: _NOT_REGISTERED,
    4: _NOT_REGISTERED,
    None: SettlingFinding(
        "the modem does not tell whether it is on a network",
        "`cellagent modem at AT+CEREG?` shows what it answers",
    ),
}
"""What is told of a registration without a certain cause; None: it could not be read."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What a kit answered at first contact. `device_id` is "" where it does not answer one."""

    verdict: FirmwareVerdict
    checks: tuple[Check, ...]
    device_id: str
    cause: Cause | None = None
    """Why the kit is not on the network, the best that is known."""
    searches_since: float | None = None
    """When its search was seen first, None where it does not search."""
    application: str = ""
    """The version of the application, "" where it does not answer one."""

    @property
    def refusal(self) -> str:
        """Why no call may be made in the kit's name, "" where it may (clause D1.3)."""
        return "" if self.verdict.allowed else self.verdict.reason

    @property
    def certain_cause(self) -> Cause | None:
        """The cause where the modem itself says so, and more than that it is denied."""
        cause = self.cause
        certain = cause is not None and cause.certainty == _CERTAIN and cause.cause != "denied"
        return cause if certain else None

    @property
    def is_off(self) -> bool:
        """Whether the modem is in a functional mode without LTE.

        One that is registered was turned on behind the question of its mode.
        """
        mode = self.value("functional_mode")
        return mode is not None and mode not in LTE_MODES and not self.is_registered

    @property
    def is_registered(self) -> bool:
        """Whether the kit is on the network."""
        return self.value("registration") in REGISTERED

    @property
    def may_be_registered(self) -> bool:
        """Whether the kit is on the network, or does not tell that it is not."""
        return self.is_registered or (self.value("registration") is None and not self.is_off)

    def value(self, name: str) -> object:
        """Return the value of a check, None where the modem did not answer it."""
        return next((check.value for check in self.checks if check.name == name), None)

    def text(self, name: str) -> str | None:
        """Return the text of a check, None where the modem did not answer it."""
        value = self.value(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int | None:
        """Return the number of a check, None where the modem did not answer it."""
        value = self.value(name)
        return value if isinstance(value, int) else None


class FindingTracker:
    """Decides which findings to report: each once, and its end once; some only if they stay."""

    def __init__(self) -> None:
        self._since: dict[Finding, float] = {}
        self._reported: set[Finding] = set()

    def update(
        self, current: Sequence[Finding], now: float
    ) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """Return the findings to report now, and the reported ones that are settled.

        `now` is in seconds, of any clock that only goes forward.
        """
        self._since = {each: self._since.get(each, now) for each in current}
        new = tuple(
            each
            for each, since in self._since.items()
            if each not in self._reported
            and (not isinstance(each, SettlingFinding) or now - since >= SETTLE_S)
        )
        settled = tuple(each for each in self._reported if each not in self._since)
        self._reported = {*self._reported, *new}.difference(settled)
        return new, settled

    @property
    def shown(self) -> list[Finding]:
        """The current findings without those that may settle soon."""
        return [
            each
            for each in self._since
            if each in self._reported or not isinstance(each, SettlingFinding)
        ]

    @property
    def has_unreported(self) -> bool:
        """Whether a current finding may settle soon, or is to be reported soon."""
        return any(each not in self._reported for each in self._since)


async def read_contact(
    modem: Modem, device_id: str, now: float, before: Contact | None = None
) -> Contact:
    """Read all that can be read without a change. `device_id` is the profile's, or "".

    A search has a cause once it lasts for SETTLE_S, since that `before`: one that just began is no
    trouble. `now` is in seconds, of any clock that only goes forward.
    """
    verdict = await read_verdict(modem)
    checks = tuple(await check_modem(modem))
    known = Contact(verdict, checks, device_id)
    contact = replace(
        known,
        device_id=device_id or await _device_id(modem, known),
        application=await _application(modem),
    )
    stat = contact.value("registration")
    if stat in _SEARCHES and not contact.is_off:
        began = before.searches_since if before is not None else None
        since = now if began is None else began
        contact = replace(contact, searches_since=since)
        if now - since < SETTLE_S:
            return contact
    elif stat not in _ABOUT and stat not in _SEARCHES:
        return contact
    cause = await likeliest_cause(modem)
    is_off = cause is not None and cause.cause == "modem-off"  # which is a finding of its own
    return replace(contact, cause=None if is_off else cause)


async def _device_id(modem: Modem, contact: Contact) -> str:
    """Return the modem's UUID, "" where it does not tell it."""
    if told := contact.value("device_uuid"):
        return str(told)
    if contact.verdict.allowed:  # else it is not asked for a token
        with suppress(CommandRejected, ParseError):
            return await read_device_uuid(modem)
    return ""


async def _application(modem: Modem) -> str:
    """Return the version of the application; only Serial Modem can be asked for it."""
    if modem.dialect is not Dialect.SERIAL_MODEM:
        return ""
    running = await running_by_at(modem, FirmwareType.APP)
    return running.version if running else ""


async def enable_registration_notices(modem: Modem) -> None:
    """Turn on notices of registration if they are off; another form of them is left as it is."""
    with suppress(CommandRejected, ParseError):
        n = (await modem.send(ReadRegistration())).n or _NOTICES
        await modem.subscribe(f"AT+CEREG={n}")


def _off(mode: object, turns_on_after_s: float | None) -> Finding:
    off = f"the modem is off (functional mode {mode})"
    if turns_on_after_s is None:
        return Finding(f"{off}: it hears no network", "`cellagent modem on` turns it on")
    return Finding(
        f"{off}: unless its firmware turns it on, the agent does after {turns_on_after_s:g} s "
        "(kit.keep_online, kit.settle_s)",
        None,
    )


def findings(
    contact: Contact, keyring: Keyring, turns_on_after_s: float | None = None
) -> Iterator[Finding]:
    """Yield what the kit lacks, the first thing to put right first.

    `turns_on_after_s`: where the agent turns the modem on by itself, how long that may take.
    """
    if not contact.verdict.allowed:
        yield Finding(
            f"{contact.refusal}; crashes are reported, no call is made in the kit's name",
            contact.verdict.hint or None,
        )
    mode, stat = contact.value("functional_mode"), contact.number("registration")
    if contact.is_off:
        yield _off(mode, turns_on_after_s)
    elif cause := contact.certain_cause:
        about = _ABOUT.get(stat or 0, "the modem has no network")
        yield Finding(f"{about}: {cause.says}", cause.next)
    elif stat in _UNREGISTERED:
        yield _UNREGISTERED[stat]
    if not contact.verdict.allowed:
        return
    # A modem that is off gets the time when it is on.
    if contact.value("time") is None and Scheme.DEVICE_JWT in keyring and not contact.is_off:
        yield SettlingFinding(
            "the modem does not know the time, so it makes no token that ends",
            "the network gives it after registration; or set it: "
            "`cellagent modem at 'AT+CCLK=\"yy/MM/dd,hh:mm:ss+00\"'`",
        )
    try:
        keyring.choose(FetchCurrentJob(contact.device_id or "unknown"))
    except CredentialError as error:
        yield Finding(str(error), error.hint or None)
    if not contact.device_id and contact.value("imei") is not None:
        yield Finding("the modem does not tell its UUID", "name the device's id in kit.device_id")
