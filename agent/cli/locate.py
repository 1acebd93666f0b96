"""`cellagent locate`: where the kit is."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import click

from agent.cli.framework.command import agent_command, emit, note, say
from agent.cli.framework.terminal import waiting
from at.protocol.counts import counted

if TYPE_CHECKING:
    from agent.cli.framework.session import Session
    from agent.location.locator import Fix
    from at.driver.modem import Modem


@agent_command("cellagent locate --port /dev/ttyACM0 --with ground-fix --json")
@click.option(
    "--with", "way", type=click.Choice(["wifi", "cell", "ground-fix"]),
    help="One way; without it the cheapest that is good enough.",
)  # fmt: skip
@click.option("--high-confidence", is_flag=True, help="The radius of 95 % instead of 68 %.")
@click.option("--no-fallback", is_flag=True, help="Refuse coarse results.")
@click.option("--no-reply", is_flag=True, help="Only let the service store the position.")
async def command(
    session: Session, way: str | None, *, high_confidence: bool, no_fallback: bool, no_reply: bool
) -> None:
    """Find the kit by the cells and Wi-Fi access points that it and this host receive."""
    import msgspec

    from agent.auth.modem_jwt import ask_modem
    from agent.http.client import refuse_any_kit
    from agent.location.locator import LocationMethod, LocationOptions, locator_for
    from at.firmware_gate import require_firmware

    profile = session.profile
    location_options = LocationOptions(
        do_reply=False if no_reply else None,
        high_confidence=True if high_confidence else None,
        fallback=False if no_fallback else None,
        send_ssid=profile.location.send_ssid,
    )
    async with AsyncExitStack() as stack:
        modem = await _modem_to_ask(session, stack, must=way != "wifi")
        kit = session.kit if modem else None
        # Only the legacy path takes a kit's own token; a key on this host takes precedence.
        ask = None
        if modem and profile.location.legacy and not profile.kit.device_key_file:
            ask = ask_modem(modem, profile.provisioning.security_tag)
        gate = partial(require_firmware, modem) if modem else refuse_any_kit
        client = await stack.enter_async_context(session.client(ask_modem=ask, kit_gate=gate))
        if way == "cell":  # it needs no Wi-Fi, wherever that is to come from
            without = msgspec.structs.replace(profile.location, wifi="none")
            profile = msgspec.structs.replace(profile, location=without)
        locator = locator_for(profile, kit, client, modem, location_options)
        async with waiting("looking for the position", session):
            fix = await locator.locate(LocationMethod(way) if way else None)
    for text in fix.notes:
        note(text)
    _show(session, fix)


async def _modem_to_ask(session: Session, stack: AsyncExitStack, *, must: bool) -> Modem | None:
    """Open the kit's modem; None where Wi-Fi is enough and no kit is there to ask.

    Then this host alone is located: nothing is sent in the name of a kit that cannot be asked.
    """
    from at.protocol.errors import PortNotFound

    kit = session.profile.kit
    if not must and not (kit.port or kit.device_id or kit.companion_port):
        return None
    try:
        return await stack.enter_async_context(session.modem())
    except PortNotFound as absent:
        if must:
            raise
        if kit.device_id or kit.companion_port:
            note(
                f"{absent}: this host is located by its own Wi-Fi, and no device is named; "
                "--port PORT names the kit"
            )
        return None


def _show(session: Session, fix: Fix) -> None:
    if session.json:
        emit(fix.to_json())
        return
    if fix.position is None:
        say(f"stored at the service ({fix.method.value}); no answer was asked for")
        return
    say(fix.position.describe())
    used = f", {fix.position.fulfilled_with}" if fix.position.fulfilled_with else ""
    if not (fix.cells or fix.access_points):
        say(f"by {fix.method.value}{used}, by the module itself")
        return
    heard = counted(fix.access_points, "access points")
    say(f"by {fix.method.value}{used}: {counted(fix.cells, 'cells')}, {heard}")
