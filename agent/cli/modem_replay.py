"""`cellagent modem replay`: a transcript as a modem, on a PTY or a TCP port."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agent.cli.frame import AgentCommand, emit, note, run
from agent.cli.places import require_one, serve_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from at.errors import TranscriptError
    from at.playback import Playback
    from at.transcript import Step


@click.command(
    cls=AgentCommand,
    name="replay",
    epilog="Example: cellagent modem replay session.transcript --pty /tmp/kit -- ./my-script",
)
@click.argument("transcript")
@click.argument("cmd", nargs=-1, type=click.UNPROCESSED)
@click.option("--pty", metavar="PATH", help="Serve on a terminal; PATH becomes a link to it.")
@click.option("--tcp", metavar="HOST:PORT", help="Serve on TCP; port 0 takes any that is free.")
@click.option("--allow-remote", is_flag=True, help="Let other machines connect.")
@click.option("--lenient", is_flag=True, help="Answer by command, in whatever order they come.")
@click.option("--paced", is_flag=True, help="Keep the recorded times between the answers.")
def command(
    transcript: str,
    cmd: tuple[str, ...],
    pty: str | None,
    tcp: str | None,
    allow_remote: bool,
    lenient: bool,
    paced: bool,
) -> None:
    """Play TRANSCRIPT as the modem whose session it is.

    Strict unless --lenient: at the first byte that was not in the session it stops, tells which
    step was expected and which is nearest, and ends with exit code 1. So it does when CMD ends
    before the session does. `AT` and the questions about AT+CMEE, with which drivers begin, are
    answered even where the session has them not.
    """
    require_one(pty, tcp)
    run(_serve(transcript, cmd, pty, tcp, allow_remote, lenient, paced))


async def _serve(
    path: str,
    cmd: tuple[str, ...],
    pty: str | None,
    tcp: str | None,
    allow_remote: bool,
    lenient: bool,
    paced: bool,
) -> int:
    from contextlib import AsyncExitStack

    from agent.cli.serving import until_told_to_stop
    from at.errors import TranscriptError
    from at.playback import Playback
    from at.transcript import escape
    from at.transport.replay import load_transcript

    playback = Playback(load_transcript(path), strict=not lenient, answers_setup=True)
    player = _Player(playback, paced=paced)
    async with AsyncExitStack() as stack:
        stack.callback(player.stop)
        port, player.send = await serve_port(
            stack, player.receive, pty=pty, tcp=tcp, allow_remote=allow_remote
        )
        emit({"ready": True, "port": port})
        player.play(playback.opening())
        code = await until_told_to_stop(cmd, {"CELLAGENT_PORT": port}, player.misfit)
    if player.misfit.done():
        raise player.misfit.result()
    if cmd and not lenient and not code and playback.remaining:
        step = playback.remaining[0]
        raise TranscriptError(
            f"{len(playback.remaining)} steps of {path} were never sent; "
            f"the first is line {step.line}, {escape(step.data)}"
        )
    if playback.remaining and not lenient:
        note(f"{len(playback.remaining)} steps of {path} were not sent")
    return code


class _Player:
    """Gives what comes back to whoever is on the port, in the recorded times if asked."""

    def __init__(self, playback: Playback, *, paced: bool) -> None:
        import asyncio

        self._playback = playback
        self._paced = paced
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self.misfit: asyncio.Future[TranscriptError] = self._loop.create_future()
        self.send: Callable[[bytes], None] = lambda _data: None

    def receive(self, data: bytes) -> None:
        """Take what was sent."""
        from at.errors import TranscriptError

        if self.misfit.done():
            return
        try:
            self.play(self._playback.sent(data))
        except TranscriptError as error:
            self.misfit.set_result(error)

    def play(self, steps: list[Step]) -> None:
        """Print steps, now or with the times between them."""
        first = next((step.at_s for step in steps if step.at_s is not None), None)
        for step in steps:
            later_s = step.at_s - first if step.at_s is not None and first is not None else 0.0
            if not self._paced or later_s <= 0:
                self.send(step.data)
            else:
                self._timers.append(self._loop.call_later(later_s, self._later, step.data))

    def _later(self, data: bytes) -> None:
        self.send(data)

    def stop(self) -> None:
        """Print nothing more."""
        for timer in self._timers:
            timer.cancel()
