"""`cellagent hold`: the running agent lets go of a kit, while a command runs."""

import os

import click

from agent.cli.framework.command import AgentCommand, emit, note
from agent.cli.framework.session import Session


class _CommandWithProgram(AgentCommand):
    """A command whose arguments after `--` are a program's; click itself would mix them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments after the first `--` as the parameter `cmd`."""
        end = args.index("--") if "--" in args else len(args)
        ctx.params["cmd"] = tuple(args[end + 1 :])
        return super().parse_args(ctx, args[:end])


@click.command(
    cls=_CommandWithProgram,
    name="hold",
    epilog="Example: cellagent hold kit -- nrfutil device program --firmware app.hex",
)
@click.argument("kit", default="", metavar="[KIT] [-- CMD...]")
async def command(session: Session, kit: str, cmd: tuple[str, ...]) -> int:
    """Make the running agent let go of KIT (its name or port) while CMD runs.

    Ends with CMD's exit code. Without CMD it holds the kit until Ctrl-C.
    """
    from agent.cli.framework.signals import serve_until_stopped
    from agent.daemon.control.client import TURN_S, open_request, process_name
    from agent.daemon.control.protocol import HoldAnswer, HoldRequest
    from agent.daemon.control.socket import control_socket_of

    named = kit or session.port or os.environ.get("CELLAGENT_PORT", "")
    configuration = session.configuration
    control_socket = control_socket_of(configuration.state_dir, configuration.name)
    held_by = f"{cmd[0]} of {process_name()}" if cmd else process_name()
    async with open_request(control_socket, HoldRequest(named, held_by)) as connection:
        held = await connection.answer(HoldAnswer, TURN_S)
        if session.json and not cmd:
            emit({"held": held.kit, "port": held.port})
        elif not cmd:
            note(f"{held.kit} ({held.port}) is free for others; Ctrl-C gives it back")
        try:
            # The agent takes the kit back at the end of this connection. CMD has it, too: where
            # only this process is killed, the port is not taken from under CMD.
            return await serve_until_stopped(
                cmd, {"CELLAGENT_PORT": held.port}, inherits=[connection.fileno()]
            )
        finally:
            connection.end()  # whatever CMD left running in the background
