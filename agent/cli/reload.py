"""`cellagent reload`: the running agent reads its profile again."""

from agent.cli.framework.command import ProfileCommand, agent_command, emit_or_say
from agent.cli.framework.session import Session


@agent_command("cellagent reload", ProfileCommand)
async def command(session: Session) -> None:
    """Make the running agent read its profile and secrets again; a mistake leaves it as it is."""
    from agent.daemon.control.client import send_request
    from agent.daemon.control.protocol import Answer, ReloadRequest

    configuration = session.configuration
    await send_request(configuration.state_dir, configuration.name, ReloadRequest(), Answer)
    emit_or_say(
        session, {"reloaded": configuration.name}, f"profile {configuration.name} was read again"
    )
