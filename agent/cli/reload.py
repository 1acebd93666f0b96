"""`cellagent reload`: the running agent reads its profile again."""

from __future__ import annotations

import click

from agent.cli.framework.command import AgentCommand, emit, options, run, say
from agent.cli.framework.session import configured


@click.command(cls=AgentCommand, name="reload", epilog="Example: cellagent reload")
def command() -> None:
    """Make the running agent read its profile and secrets again; a mistake leaves it as it is."""
    run(_reload())


async def _reload() -> int:
    from agent.daemon.control.client import send_request
    from agent.daemon.control.protocol import Answer, ReloadRequest

    configuration = configured()
    await send_request(configuration.state_dir, configuration.name, ReloadRequest(), Answer)
    if options().json:
        emit({"reloaded": configuration.name})
    else:
        say(f"profile {configuration.name} was read again")
    return 0
