"""`cellagent hold`: the running agent lets go of a kit, while a command runs."""

from __future__ import annotations

import click

from agent.cli.framework.command import AgentCommand, emit, note, options, run
from agent.cli.framework.session import configured


class _CommandWithProgram(AgentCommand):
    """A command whose arguments after `--` are a program's; click itself would mix them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments after the first `--` as the program in `ctx.meta["cmd"]`."""
        if "--" in args:
            separator = args.index("--")
            ctx.meta["cmd"] = tuple(args[separator + 1 :])
            args = args[:separator]
        return super().parse_args(ctx, args)


@click.command(
    cls=_CommandWithProgram,
    name="hold",
    epilog="Example: cellagent hold kit -- nrfutil device program --firmware app.hex",
)
@click.argument("kit", default="", metavar="[KIT] [-- CMD...]")
@click.pass_context
def command(ctx: click.Context, kit: str) -> None:
    """Make the running agent let go of KIT (its name or port) while CMD runs.

    Ends with CMD's exit code. Without CMD it holds the kit until Ctrl-C.
    """
    run(_hold(kit or options().port or "", ctx.meta.get("cmd", ())))


async def _hold(kit: str, cmd: tuple[str, ...]) -> int:
    from agent.cli.framework.signals import serve_until_stopped
    from agent.daemon.control.client import TURN_S, open_request, process_name
    from agent.daemon.control.protocol import HoldAnswer, HoldRequest
    from agent.daemon.control.socket import control_socket_of

    configuration = configured()
    control_socket = control_socket_of(configuration.state_dir, configuration.name)
    held_by = f"{cmd[0]} of {process_name()}" if cmd else process_name()
    async with open_request(control_socket, HoldRequest(kit, held_by)) as connection:
        held = await connection.answer(HoldAnswer, TURN_S)
        if options().json and not cmd:
            emit({"held": held.kit, "port": held.port})
        elif not cmd:
            note(f"{held.kit} ({held.port}) is free for others; Ctrl-C gives it back")
        return await serve_until_stopped(cmd, {"CELLAGENT_PORT": held.port})
