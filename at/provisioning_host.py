"""A host's duties while its kit takes provisioning commands (#XNRFPROV of Serial Modem 2.0).

The client on the kit turns the radio neither off nor on by itself: it asks its host to, before it
writes credentials and after. What else it says is the end of the session.
"""

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress

from at.causes.live import likeliest_cause
from at.commands.functional_mode import FunctionalMode, SetFunctionalMode
from at.commands.serial_modem.application import SerialModemNotice
from at.commands.serial_modem.cloud import CloudState, ConnectCloud, ReadCloudState
from at.commands.serial_modem.provisioning import (
    ProvisioningEvent,
    ProvisioningNotice,
    StartProvisioning,
)
from at.commands.serial_modem.syntax import ReadProvisioningSyntax
from at.driver.modem import Modem
from at.driver.stream import Stream
from at.found_state import ONLINE_S, is_registered
from at.protocol.errors import CommandRejected, CommandTimeout, ParseError, ProvisioningFailed
from at.protocol.notices import Malformed, Notice

NEXT_S = 180.0
"""How long a client may say nothing: it waits 120 s for the network, and then asks the service."""
_LEFT_S = 10.0
"""How long a client that was left waits for the radio, asks the service and says something."""
_CONNECTION_S = 60.0
_LOOK_S = 0.5
_MOST_ROUNDS = 20
NAME = "#XNRFPROV"
DUTIES: Mapping[ProvisioningEvent, FunctionalMode] = {
    ProvisioningEvent.GO_OFFLINE: FunctionalMode.FLIGHT,
    ProvisioningEvent.GO_ONLINE: FunctionalMode.NORMAL,
}
"""The functional mode that the client asks its host for."""
_FAILURES: Mapping[ProvisioningEvent, tuple[str, str]] = {
    ProvisioningEvent.FAILED: (
        "the kit could not take its provisioning commands",
        "is it on the network? `cellagent modem why` says; then start it again",
    ),
    ProvisioningEvent.NOT_CLAIMED: (
        "the kit is not claimed",
        "`cellagent provision run --registration claim` claims it; then start it again",
    ),
    ProvisioningEvent.WRONG_ROOT_CA: (
        "the kit has another root certificate than the provisioning service",
        "write the service's root CA into the security tag of the kit's provisioning client",
    ),
    ProvisioningEvent.NO_TIME: (
        "the kit does not know the time, so it makes no token for the provisioning service",
        "the network gives it after registration; or set it (AT+CCLK, `provision run --set-clock`)",
    ),
    ProvisioningEvent.TOO_MANY_COMMANDS: (
        "the provisioning service has more commands for the kit than it takes at once",
        "an nRF91M1 takes 5: claim it with a rule that has fewer",
    ),
    ProvisioningEvent.STOPPED: (
        "the kit's provisioning client has stopped for good",
        "restart the kit's application: `cellagent modem at 'AT#XRESET'`",
    ),
}


def failure_of(event: ProvisioningEvent) -> ProvisioningFailed | None:
    """Return what an event means if it ends a session badly, with what to do next; else None."""
    if event not in _FAILURES:
        return None
    says, hint = _FAILURES[event]
    return ProvisioningFailed(f"{says} ({NAME}: {event:d})", hint=hint)


def event_of(notice: Notice) -> ProvisioningEvent:
    """Return what a notice of the client says. Raises ParseError."""
    if isinstance(notice, ProvisioningNotice):
        return ProvisioningEvent(notice.value.status)
    raise ParseError(notice.error if isinstance(notice, Malformed) else notice.line)


async def has_client(modem: Modem) -> bool:
    """Return whether a kit with Serial Modem has a provisioning client: not every build has."""
    return await modem.try_send(ReadProvisioningSyntax()) is not None


async def go_online(modem: Modem) -> None:
    """Turn the radio on and wait for the network. Raises ProvisioningFailed."""
    await modem.send(SetFunctionalMode(FunctionalMode.NORMAL))
    try:
        async with asyncio.timeout(ONLINE_S):
            while True:
                if await is_registered(modem):
                    return
                await asyncio.sleep(_LOOK_S)
    except TimeoutError as error:
        cause = await likeliest_cause(modem)
        raise ProvisioningFailed(
            f"the kit is not on the network after {ONLINE_S:.0f} s, and cannot ask the service: "
            + (cause.says if cause else "its modem does not say why"),
            hint=cause.next if cause else "`cellagent modem why` watches what it does",
        ) from error


async def take_commands(modem: Modem, *, was_left: bool = False) -> None:
    """Have the kit take its provisioning commands; the modem is on the network before and after.

    `was_left`: a host that was cut off may have left a session, which is brought to its end first.
    Raises ProvisioningFailed, and CommandRejected where there is no client.
    """
    if was_left:
        await _end_left_session(modem)
    with modem.notices(NAME) as notices:
        await modem.send(StartProvisioning())
        await follow(modem, notices)


async def _end_left_session(modem: Modem) -> None:
    """Have the radio as a client that was left waits for it, which asked a host that is gone."""
    with modem.notices(NAME) as notices:
        for mode in (FunctionalMode.NORMAL, FunctionalMode.FLIGHT):
            await modem.send(SetFunctionalMode(mode))
            try:
                async with asyncio.timeout(_LEFT_S):
                    first = await anext(notices)
            except TimeoutError:
                continue
            with suppress(ProvisioningFailed):  # the commands wait for the next session
                await follow(modem, notices, first)
            break
    await go_online(modem)


async def follow(modem: Modem, notices: Stream[Notice], first: Notice | None = None) -> None:
    """Do as the client asks until its session ends. Raises ProvisioningFailed, ParseError.

    `first` is a notice that came already. A radio that was turned off for a session that failed is
    turned on again.
    """
    asked: list[ProvisioningEvent] = []
    restarts = modem.restarts
    try:
        while (event := await _next(modem, notices, first, restarts)) in DUTIES:
            first = None
            asked.append(event)
            await modem.send(SetFunctionalMode(DUTIES[event]))
            if len(asked) == 2 * _MOST_ROUNDS:
                raise ProvisioningFailed(
                    f"the kit asked for the radio off and on {_MOST_ROUNDS} times, and is not done",
                    hint="look at the device's provisioning commands at the service",
                )
        if failure := failure_of(event):
            raise failure
    except (ProvisioningFailed, ParseError):
        if asked and asked[-1] is ProvisioningEvent.GO_OFFLINE:
            with suppress(CommandRejected, CommandTimeout):
                await modem.send(SetFunctionalMode(FunctionalMode.NORMAL))
        raise
    if ProvisioningEvent.GO_OFFLINE in asked:
        await renew_cloud_session(modem)


async def _next(
    modem: Modem, notices: Stream[Notice], first: Notice | None, restarts: int
) -> ProvisioningEvent:
    """Return what the client says next, in a session in which there were `restarts` before it."""
    if first is not None:
        return event_of(first)
    for _ in range(math.ceil(NEXT_S / _LOOK_S)):
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                return event_of(await anext(notices))
        if modem.restarts > restarts:  # its session has ended with it, without a word
            raise ProvisioningFailed(
                "the kit restarted while it took its provisioning commands",
                hint="start it again: what it was to take waits at the service",
            )
    raise ProvisioningFailed(
        f"the kit's provisioning client has said nothing for {NEXT_S:.0f} s",
        hint="restart the kit's application: `cellagent modem at 'AT#XRESET'`; then start it again",
    )


async def renew_cloud_session(modem: Modem) -> None:
    """Close and open a session with nRF Cloud that is open: it keeps the credentials it began with.

    Where that is refused, or takes too long, it is left as it is.
    """
    with suppress(CommandRejected, CommandTimeout, ParseError, TimeoutError):
        state = await modem.send(ReadCloudState())
        if not state.ready:
            return
        with modem.notices("#XNRFCLOUD") as notices:
            await modem.send(ConnectCloud(0))
            async with asyncio.timeout(_CONNECTION_S):
                async for notice in notices:
                    value = notice.value if isinstance(notice, SerialModemNotice) else None
                    if isinstance(value, CloudState) and not value.ready:
                        break
            await modem.send(ConnectCloud(1, state.send_location))
