"""`cellagent device onboard-kit`: an nRF93M1 brings itself into the team by its own token."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from agent.cli.device import changes
from agent.cli.framework.command import emit_or_say
from agent.cli.framework.session import Session, device_cloud_command
from agent.errors import AgentError, UsageError

if TYPE_CHECKING:
    from agent.cloud import DeviceCloud
    from at.commands.nrf93m1 import RegistrationToken
    from at.driver.modem import Modem

_SUB_TYPE = "nRF93M1"


@changes.group.command(
    name="onboard-kit",
    epilog="Example: cellagent device onboard-kit --port /dev/ttyACM1 --set-clock",
)
@click.option("--tag", "tags", multiple=True, help="May be repeated.")
@click.option("--set-clock", is_flag=True, help="Set the module's clock from this host's.")
@device_cloud_command
async def command(
    session: Session, cloud: DeviceCloud, tags: tuple[str, ...], set_clock: bool
) -> None:
    """Bring the nRF93M1 at the port into the team, by a token that it signs itself.

    It has no certificates. The token needs a clock that is set, and opens nothing after an hour.
    """
    from at.firmware_gate import require_firmware

    async with session.modem() as modem:
        await require_firmware(modem)
        if not modem.dialect.traits.is_module:
            raise UsageError(
                "the modem at the port is no nRF93M1",
                hint="`cellagent provision run` is for kits of the nRF91",
            )
        team_id = (await cloud.account()).team_id
        token = await registration_token(
            modem, team_id, set_clock_to=datetime.now(UTC) if set_clock else None
        )
    uuid = token.device_uuid
    await cloud.onboard_by_token(uuid, token.token, sub_type=_SUB_TYPE, tags=tags)
    emit_or_say(session, {"device_id": uuid, "team": team_id}, f"{uuid} is onboarded")


async def registration_token(
    modem: Modem, team_id: str, *, set_clock_to: datetime | None
) -> RegistrationToken:
    """Return a token of the module for a team, checked against the UUID that it tells.

    Raises AgentError where its clock is not set, or the token is another device's or team's.
    """
    from at.commands.clock import ReadClock, SetClock, clock_text
    from at.commands.identity import ReadDeviceUuid
    from at.commands.nrf93m1 import MakeRegistrationToken

    uuid = (await modem.send(ReadDeviceUuid())).uuid
    if set_clock_to is not None:
        await modem.send(SetClock(clock_text(set_clock_to)))
    if not (await modem.send(ReadClock())).is_set:
        raise AgentError(
            "the module's clock is not set, so that it makes no token",
            hint="`--set-clock` sets it from this host's, `cellagent modem on` from the network's",
        )
    token = await modem.send(MakeRegistrationToken(team_id))
    if token.device_uuid.lower() != uuid.lower() or token.team_id != team_id:
        raise AgentError(
            f"the token is not of the device {uuid} for this team",
            hint="ask once more; `cellagent modem check` shows which module answers",
        )
    return token
