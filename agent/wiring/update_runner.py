"""A kit's update runner put together from its configuration, for a command that runs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.auth.modem_jwt import ask_modem
from agent.fota.assemble import runner_for
from agent.wiring.service_client import connect

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from agent.config import Configuration
    from agent.fota.runner import Runner
    from agent.fota.tools import Observer
    from at.driver.modem import Modem


async def update_runner(
    stack: AsyncExitStack,
    configuration: Configuration,
    modem: Modem | None,
    observer: Observer | None = None,
) -> Runner:
    """Return a runner whose parts, its client among them, are closed when `stack` unwinds.

    Raises ConfigError, JobInOtherHands, RefusedByRule where the firmware gate refuses the kit and
    no API key is there to report that with, and AtError.
    """
    profile = configuration.profile
    ask = None if modem is None else ask_modem(modem, profile.provisioning.security_tag)
    client = await stack.enter_async_context(connect(configuration, ask_modem=ask))
    return await runner_for(
        stack, profile, configuration.state_dir, client, modem=modem, observer=observer
    )
