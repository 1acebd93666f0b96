"""`cellagent modem check`: what the modem is, whether it may be used, how it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from agent.cli.frame import AgentCommand, emit, options, run, say

if TYPE_CHECKING:
    from at.command import Command
    from at.firmware import Verdict
    from at.modem import Modem

_REGISTRATION = {
    0: "not registered, not searching",
    1: "registered, home network",
    2: "searching",
    3: "denied",
    4: "out of coverage",
    5: "registered, roaming",
    90: "no usable SIM",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. `ok` is None for what is neither good nor bad."""

    name: str
    value: object
    shown: str
    ok: bool | None = None
    hint: str = ""


@click.command(
    cls=AgentCommand,
    name="check",
    epilog="Example: cellagent modem check --port /dev/ttyACM0",
)
def command() -> None:
    """Tell what the modem is, whether its firmware may make device calls, and how it is.

    Changes nothing on the modem. Exits with 4 where the firmware is refused.
    """
    run(_check())


async def _check() -> int:
    from agent.cli.kit import kit_modem
    from at.commands.identity import ReadRevision
    from at.firmware import gate

    async with kit_modem() as modem:
        revision = await modem.send(ReadRevision())
        verdict = gate(revision.revision)
        checks = [
            Check("dialect", modem.dialect.value, modem.dialect.value),
            Check("terminator", modem.terminator.value, modem.terminator.value),
            _firmware(verdict),
            *[await _ask(modem, *question) for question in _questions()],
        ]
        if options().json:
            emit(
                {"port": modem.name, "allowed": verdict.allowed, "reason": verdict.reason or None}
                | {check.name: check.value for check in checks}
            )
        else:
            _show(modem.name, checks)
    return 0 if verdict.allowed else 4


def _firmware(verdict: Verdict) -> Check:
    shown = verdict.text if verdict.allowed else f"{verdict.text}: {verdict.reason}"
    return Check("firmware", verdict.text, shown or verdict.note, verdict.allowed, verdict.hint)


def _questions() -> list[tuple[str, Command[Any], str]]:
    """Return name, command and the field of its answer that tells."""
    from at.commands.clock import ReadClock
    from at.commands.identity import ReadDeviceUuid, ReadImei, ReadModel
    from at.commands.power import ReadFunctionalMode
    from at.commands.registration import ReadRegistration
    from at.commands.sim import ReadPinState

    return [
        ("model", ReadModel(), "model"),
        ("imei", ReadImei(), "imei"),
        ("device_uuid", ReadDeviceUuid(), "uuid"),
        ("functional_mode", ReadFunctionalMode(), "fun"),
        ("sim", ReadPinState(), "code"),
        ("registration", ReadRegistration(), "stat"),
        ("time", ReadClock(), "time"),
    ]


async def _ask(modem: Modem, name: str, command: Command[Any], field: str) -> Check:
    from at.errors import CommandRejected, ParseError

    try:
        answer = await modem.send(command)
    except CommandRejected as refused:
        return Check(name, None, f"not told ({refused})", None, _WHY_NOT.get(name, ""))
    except ParseError as malformed:
        return Check(name, None, f"not understood: {malformed}", False)
    value = getattr(answer, field)
    if name == "registration":
        return Check(name, value, _REGISTRATION.get(value, str(value)), value in {1, 5} or None)
    if name == "functional_mode":
        return Check(name, int(value), _mode(int(value)))
    shown = str(value)
    return Check(name, value if isinstance(value, int | None) else shown, shown)


_WHY_NOT = {
    "sim": "it answers only while the modem is on: AT+CFUN=1",
    "time": "the network gives the time; --set-clock of other commands sets it from this computer",
    "device_uuid": "an nRF9160 tells it in a token only: `cellagent modem jwt`",
}


def _mode(mode: int) -> str:
    names = {0: "off", 1: "on", 4: "flight mode", 20: "LTE off", 21: "LTE on", 44: "flight mode"}
    return f"{mode} ({names[mode]})" if mode in names else str(mode)


def _show(port: str, checks: list[Check]) -> None:
    say(f"{port} answers AT")
    for check in checks:
        mark = {True: "ok", False: "NO", None: ""}[check.ok]
        say(f"  {mark:2}  {check.name.replace('_', ' '):16} {check.shown}")
        if check.hint and check.ok is not True:
            say(f"        try: {check.hint}")
