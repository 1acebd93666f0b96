"""`cellagent modem on | off | reset`: the functional mode, changed because a person asks for it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import agent_command, emit, emit_or_say, note, say
from agent.cli.framework.hints import pasteable_hint
from agent.cli.framework.number_types import Seconds
from agent.cli.framework.session import Session
from agent.cli.framework.terminal import show_progress
from agent.cli.modem.why import as_objects, show
from agent.errors import AgentError, with_hint
from at.commands.functional_mode import FunctionalMode, SetFunctionalMode
from at.protocol.errors import CommandRejected

if TYPE_CHECKING:
    from at.driver.modem import Modem

_HOPELESS, _HOPELESS_S = frozenset({3, 90}), 5.0
"""The <stat> of +CEREG, denied and no SIM, that ends the wait if it stays for so many seconds."""


@agent_command("cellagent modem on --port /dev/ttyACM0")
@click.option(
    "--deadline",
    "deadline_s",
    type=Seconds(0),
    default=120.0,
    show_default=True,
    help="Seconds to wait for the network.",
)
async def on(session: Session, deadline_s: float) -> int:
    """Turn the modem on (functional mode 1) and wait until it is on the network.

    Where it does not get there, the cause is told as `modem why` tells it; the modem stays on.
    """
    from at.causes.live import causes_of_modem

    async with session.modem() as modem:
        started, known = time.monotonic(), set[str]()
        try:
            await modem.send(SetFunctionalMode(FunctionalMode.NORMAL))
            registered = await _is_registered_within(modem, deadline_s)
        except CommandRejected as error:
            note(with_hint(str(error), pasteable_hint(error.hint, str(error), session)))
            registered, known = False, {"modem-off"}  # the other causes may say why
        took = time.monotonic() - started
        causes = [] if registered else await causes_of_modem(modem, watch_s=0)
        causes = [one for one in causes if one.cause not in known]
        if session.json:
            emit(
                {
                    "port": modem.name,
                    "registered": registered,
                    "seconds": round(took, 1),
                    "causes": as_objects(causes, session),
                }
            )
        elif registered:
            say(f"{modem.name} is on, and on the network after {took:.0f} s")
        else:
            say(f"{modem.name} is not on the network after {took:.0f} s:")
            show(causes, session)
    return 0 if registered else AgentError.exit_code


@agent_command("cellagent modem off --port /dev/ttyACM0")
@click.option("--flight", is_flag=True, help="Flight mode (4): the SIM and GNSS stay on.")
async def off(session: Session, *, flight: bool) -> None:
    """Turn the modem off (functional mode 0): it saves what it learned of the cells first.

    A running agent leaves it off, whatever kit.keep_online says, until it is turned on again.
    """
    mode = FunctionalMode.FLIGHT if flight else FunctionalMode.OFF
    async with session.modem() as modem:
        await modem.send(SetFunctionalMode(mode))
        emit_or_say(
            session,
            {"port": modem.name, "functional_mode": int(mode)},
            f"{modem.name} is off (functional mode {mode:d})",
        )


@agent_command("cellagent modem reset --port /dev/ttyACM0")
async def reset(session: Session) -> int:
    """Restart the modem, then bring it back to how it was: mode, subscriptions, clock.

    Of Serial Modem firmware the modem core restarts (#XMODEMRESET); other firmware has no such
    command, so there the modem is turned off and on. The application goes on running.
    """
    from agent.fota.clock import LoopClock
    from at.commands.serial_modem.application import ResetModem
    from at.found_state import NOT_BACK, put_back, read_found_state
    from at.protocol.dialect import Dialect

    async with session.modem() as modem:
        found, restarts = await read_found_state(modem), modem.dialect is Dialect.SERIAL_MODEM
        try:
            # Off first: it keeps the cells it knows, and does not count as one of a loop of resets.
            await modem.send(SetFunctionalMode(FunctionalMode.OFF))
            if restarts:
                await modem.send(ResetModem())
            ended = await put_back(modem, found, 0.0, LoopClock())
        except asyncio.CancelledError:
            # As it was, but for the network, which nobody waits for any more.
            await put_back(modem, replace(found, registered=False), 0.0, LoopClock())
            raise
        was_off = found.mode == FunctionalMode.OFF
        how = "restarted" if restarts else "off, as it was" if was_off else "turned off and on"
        is_back = not ended.startswith(NOT_BACK)
        emit_or_say(
            session,
            {
                "port": modem.name,
                "functional_mode": found.mode,
                "restarted": restarts,
                "back": is_back,
                "says": ended or None,
            },
            f"{modem.name} was {how}" + (f": {ended}" if ended else ""),
        )
    return 0 if is_back else AgentError.exit_code


async def _is_registered_within(modem: Modem, deadline_s: float) -> bool:
    """Return whether it registers in time; a person sees on a terminal how far it is."""
    from at.commands.registration import REGISTERED, ReadRegistration

    started = hopeful = time.monotonic()
    total = max(1, round(deadline_s))
    try:
        while True:
            stat = (await modem.send(ReadRegistration())).stat
            now = time.monotonic()
            if stat in REGISTERED:
                return True
            if stat not in _HOPELESS:
                hopeful = now
            if now - started >= deadline_s or now - hopeful >= _HOPELESS_S:
                return False
            show_progress("waiting for the network, s", min(round(now - started), total - 1), total)
            await asyncio.sleep(1.0)
    finally:
        show_progress("waiting for the network, s", total, total)
